#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/ids.h"

namespace rehearsal::net_fake {

// The subject of a choice. The first group is the network's own; the others name what nodes and the
// run as a whole leave to chance, so that one Key can name any decision of a run.
enum class DecisionKind : uint8_t {
  latency,           // number: the frame; how long it travels
  retransmission,    // number: the frame; whether it is lost and sent again, and how often
  cut,               // number: the frame; whether the link is lost at it
  partition,         // number: the frame; whether a partition begins at it
  partition_shape,   // number: the frame at which it begins; who is cut off from whom
  partition_member,  // number: the partition; where a worker belongs
  partition_length,  // number: the frame at which it begins
  clog,              // number: the frame; whether a link is slowed or jammed from it on
  clog_shape,        // number: the frame at which it begins; which links, and how
  clog_length,       // number: the frame at which it begins, or the clog, for one of its workers
  corruption,        // number: the frame; whether a bit of it flips
  flipped_bit,       // number: the frame; which one
  connect_latency,   // number: the attempt
  refusal,           // number: the attempt
  hang,              // number: the attempt; whether nobody answers
  back_off,          // number: the attempt; jitter
  lost_suffix,       // number: connection and lane; how many frames are gone with the link
  notice_latency,    // number: the connection; when an end hears of the loss
  silence,           // number: the connection; whether an end hears of the loss at all
  heal_latency,      // number: the connection; when a stalled lane moves again

  start,   // place: the execution; when it starts
  resume,  // place: the execution, occurrence: of its parks; when it goes on
  timer,   // number: the timer; how late it is
  boot,    // when a life of a worker starts

  pause,              // number: the event of the worker; whether its machine pauses before it
  pause_length,       // number: the event of the worker
  clock_jump,         // number: the event of the worker; whether its clock jumps before it
  clock_jump_length,  // number: the event of the worker

  swarm,         // number: which property of the run's faults
  crash_victim,  // number: which crash
  crash_moment,  // number: which crash
  restart,  // number: which crash, or of a worker that has left; whether and when it comes back

  pick,      // number: the step; which event is next, of those that may be
  priority,  // number: an event, or the kind of the chain that `subject` spells as its two numbers
  plan,      // number: which property of a strategy's plan
  short_life,  // of a link: whether its connections break behind a number of messages
  vacancy,     // of a life that has crashed: whether its port refuses, or its machine is gone, too
  madness,     // number 0: which worker is mad, 1: how often
  lie,         // number: the event of a mad worker; whether it lies after it, and how
  device,      // of a life; number: of what its simulated devices draw
  lending,     // of a life; 0: its devices' memory cannot be read by those of others
  copied_parts,  // of a life; 0: its devices copy each tensor to the host at once
  // Never drawn. number: of an event in the chain that `subject`, `object` and, as its kind, the
  // occurrence spell; how many others go before it although it was due earlier.
  hold,
};
inline constexpr size_t kDecisionKinds = static_cast<size_t>(DecisionKind::hold) + 1;

[[nodiscard]] std::string_view name_of(DecisionKind kind);

// One life of a worker: 0 before its first restart.
struct LifeId {
  WorkerId worker{UINT32_MAX};
  uint32_t life = 0;
  auto operator<=>(const LifeId&) const = default;
};

// Names one decision by the thing it is about, never by a position in a stream: a new decision
// elsewhere in the run changes no other.
struct Key {
  DecisionKind kind{};
  LifeId subject{};         // the node, or the sender of a link; unset for the run as a whole
  LifeId object{};          // the receiver of a link; else unset
  Hash128 place{};          // the causal place of an execution; else zero
  uint64_t number = 0;      // see DecisionKind
  uint64_t occurrence = 0;  // the attempt of that frame, the park of that execution
  auto operator<=>(const Key&) const = default;
};

// The value that a policy turns into a choice: depends on nothing but the seed and the key.
[[nodiscard]] uint64_t hash_of(Seed seed, const Key& key);

// One word without spaces, for example `cut:1.0>0.0#7.1`; `parse_key` reads it back.
[[nodiscard]] std::string to_string(const Key& key);
[[nodiscard]] std::optional<Key> parse_key(std::string_view text);

// Where every choice of the network comes from.
class Decisions {
 public:
  virtual ~Decisions() = default;

  // A number in [0, n). 0 is the benign choice: no fault, first in first out, least delay. The same
  // key gives the same number. REQUIRES: n > 0.
  [[nodiscard]] virtual uint64_t choose(const Key& key, uint64_t n) = 0;
};

// Probabilities are millionths: no float decides anything.
inline constexpr uint64_t kMillion = 1'000'000;

// A number from `min` on of which each doubling is as likely as any other: `drawn` is a choice
// among the doublings << bits.
[[nodiscard]] constexpr uint64_t in_doublings(uint64_t min, uint64_t drawn, int bits) {
  const uint64_t base = min << (drawn >> bits);
  return base + (base * (drawn & ((uint64_t{1} << bits) - 1)) >> bits);
}

// Whether the thing happens that happens with this probability.
[[nodiscard]] inline bool happens(Decisions& decisions, const Key& key, uint64_t millionths) {
  return millionths > 0 && decisions.choose(key, kMillion) >= kMillion - millionths;
}

}  // namespace rehearsal::net_fake
