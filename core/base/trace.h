#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal {

enum class EventKind : uint8_t {
  // Entries to the strand.
  frame,      // peer, id of its message, message_type, bytes; digest of the envelope
  ack_frame,  // ack-only, heartbeat and fenced frames
  peer_up,    // peer, number: its incarnation
  peer_lost,  // peer, text: why
  drained,    // peer
  timer,      // text: what it is for
  // id, peer, text: function, number: nanoseconds until it is given up (0: never), digest: its
  // CallForm. A call that only creates a reference (`remote`) is never completed.
  api_call,
  execution_started,  // id of what started it, text: label
  execution_parked,   // the same, number: monitors kept meanwhile, value: what the last guards
  execution_resumed,  // id of what started it, text: label
  execution_ended,    // the same
  // Acts of the node.
  frame_sent,     // peer, id, message_type, bytes
  frame_resent,   // peer, number: its sequence number, bytes
  frame_dropped,  // peer, text: why
  call_executed,  // id: a user function starts running for this call
  // id, peer, number: 0 value, else 1 + ErrorKind. At the caller; also if it never left.
  call_completed,
  // The same at the callee, text: function. It is answered, or its reference has its value.
  call_served,
  peer_fenced,       // peer, number: the incarnation, text: why
  owner_created,     // id of the RRef, number: counter
  owner_dropped,     // the same: the value is gone
  fork_registered,   // id of the fork, number: CausalIdHash of its RRef's id
  fork_deleted,      // the same
  fork_refused,      // the same
  user_created,      // the same: a UserRRef exists
  user_deleted,      // the same
  context_opened,    // id of the context, number: 1 at its creator
  context_released,  // the same
  pass_started,  // id of the context, peer: its starter, number: epoch, digest: of its incarnation
  pass_ended,    // the same, text: empty or the error
  // id of the context, number: CausalIdHash of the call of the step, text: empty or the error
  optimizer_stepped,
  checkpoint_saved,   // text: its name, digest: of its bytes
  checkpoint_loaded,  // the same; digest 0: there was none
  reference_leaked,   // text: the reference that was still held at the shutdown, by whom
  node_stopped,       // text: why
  // id of what started the execution that says it, text: a name, value: what the program says,
  // number: 1 if that is a number, digest: of the value
  note,
  mark,  // text: the name of a rare branch that was reached
  // id of what destroyed the value, text: its type, value: why. Its destructor has let an exception
  // out; what it had yet to do is not done, and its memory stays.
  destructor_failed,
};
inline constexpr size_t kEventKinds = static_cast<size_t>(EventKind::destructor_failed) + 1;

// How a call was made.
enum class CallForm : uint8_t { rpc_sync, remote, rpc_async };

// The name of a call, for people: `rpc_sync#add(trainer -> ps)`; also rpc_async and rpc_remote.
[[nodiscard]] std::string call_text(CallForm form, std::string_view function,
                                    std::string_view caller, std::string_view callee);

inline constexpr WorkerId kNoPeer{UINT32_MAX};

// One thing that happened at one worker. `text` lives as long as the call of on_event.
struct Event {
  EventKind kind{};
  WorkerId worker;
  WorkerId peer = kNoPeer;
  CausalId id;
  uint32_t message_type = 0;
  uint64_t number = 0;
  uint64_t digest = 0;
  uint64_t bytes = 0;  // of a message: its envelope and its tensors
  std::string_view text;
  std::string_view value;  // of a note, and of a monitor; lives as long as the text
  // On the time line of its worker. The node leaves it out: whoever gave the node its time and its
  // trace fills it in.
  Instant when{};
};

// Sees everything a node does, in order, on its strand. It must not call the node.
class Trace {
 public:
  virtual ~Trace() = default;
  virtual void on_event(const Event& event) = 0;

  // Whether notes of user code are heard: only then are their texts made. Always the same answer;
  // any thread.
  [[nodiscard]] virtual bool hears_notes() const { return true; }
};

}  // namespace rehearsal
