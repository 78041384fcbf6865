#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/values/payload.h"
#include "core/wire/pass_name.h"
#include "core/wire/trace_context.h"

// Every message of the protocol, one struct each; messages.proto has the same on the wire.
namespace rehearsal {

enum class CallKind : uint8_t {
  function,   // registered: function, constructor or method
  operator_,  // an ATen operator by schema name
  fetch,      // the value of `target`
  await,      // whether the value of `target` is there: answered with the unit when it is
};

// The autograd message that a call or an answer carries.
struct AutogradMetadata {
  AutogradContextId context;
  AutogradMessageId message;
  WorkerId creator;  // of the context
};

// Of an operator: no name that is registered has so many bytes.
inline constexpr size_t kOperatorNameMax = 4096;

struct Call {
  CallId id;
  CallKind kind = CallKind::function;
  uint32_t function = 0;          // position in the registry
  std::string name;               // of an operator; up to kOperatorNameMax
  std::optional<RRefId> target;   // the object of a method, or what is fetched
  std::optional<RRefId> created;  // `remote`: the result becomes this reference's value
  ForkId created_fork;            // and this is the creator's own fork of it
  Payload arguments;
  Duration time_left{};                      // until the caller gives up; zero: never
  uint32_t depth = 0;                        // calls that this one is nested in
  std::optional<AutogradMetadata> autograd;  // the arguments' tensors are recorded
  std::optional<ContextName> context;        // what the callee does is recorded in it
  uint64_t credit = 0;  // its answer is a stream, of which so many values may come; zero: it is not
  std::optional<TraceContext> trace;  // carried for the program
  // The stream of the callee's random numbers, if it is not that of the id's place: the caller's
  // worker has had an earlier life.
  std::optional<Hash128> stream;
  // It runs when all have ended that this worker's handle of this name has called before
  // (RRef::in_order).
  std::optional<CausalId> order;
  // For people: why its arguments cannot be had. It is answered so, and does not run. Empty: they
  // are here.
  std::string failure;
};

struct Response {
  CallId id;
  Payload value;
  MaybeError error;
  std::optional<AutogradMetadata> autograd;
  // Of an error: 1 + the position of a registered exception type, whose encoded exception `value`
  // is. Zero: none.
  uint32_t exception = 0;
};

// The caller has given up.
struct Cancel {
  CallId id;
};

// One value of the stream that answers a call.
struct Item {
  CallId call;
  uint64_t position = 0;  // from 0, without gaps: lanes reorder them
  Payload value;
  MaybeError error;  // why it cannot be had: the stream ends there
  std::optional<AutogradMetadata> autograd;
};

// More values of a stream may come.
struct Credit {
  CallId call;
  uint64_t items = 0;  // in all, from the first on
};

// A stream has ended.
struct End {
  CallId call;
  uint64_t items = 0;  // it had so many: some may be still on their way
  MaybeError error;
  Payload value = {};      // of an error that is an exception of a registered type; see Response
  uint32_t exception = 0;  // the same
};

struct ForkRequest {
  RRefId rref;
  ForkId fork;
};

struct ForkConfirm {
  ForkId fork;
  MaybeError error;  // refused
};

struct ChildAccept {
  ForkId fork;
};

struct UserDelete {
  RRefId rref;
  ForkId fork;
};

struct ContextReached {
  AutogradContextId context;
};

struct ContextRelease {
  AutogradContextId context;
};

// Gradients of the tensors that the autograd message `message` carried; undefined ones too.
struct Gradients {
  PassName pass;
  AutogradMessageId message;
  Payload gradients;
  std::optional<AutogradMetadata> autograd;  // of a pass that is recorded itself
  // The positions of the tensors that the roots do not depend on: what leads to them alone takes no
  // part in the pass. An undefined gradient of another one says that it is zero. In FAST mode all
  // of them may be: every message gets gradients to which a message that gets them leads.
  std::vector<uint32_t> unreached;
};

// A Gradients message and all that it caused are done.
struct GradientsAnswered {
  PassName pass;
  AutogradMessageId message;
};

// A wave over the workers of the context, and what each is asked.
enum class PassWave : uint8_t {
  check,   // is the pass complete here?
  resume,  // what no mark has reached gets no gradient: go on
  commit,  // keep the gradients
};
inline constexpr uint32_t kPassWaves = 3;

struct PassFinish {
  PassName pass;
  PassWave wave = PassWave::check;
};

struct PassFinished {
  PassName pass;
  MaybeError error;
  bool undecided = false;  // there are nodes that wait for what may never come
};

// Tensors of one autograd message, by their positions; at least one.
struct Mark {
  AutogradMessageId message;
  std::vector<uint32_t> tensors;
};

// The roots of the pass depend on these tensors of the receiver: it will be sent gradients for
// them.
struct Marks {
  PassName pass;
  std::vector<Mark> marks;  // at least one
};

// A Marks message and all marks that it caused have arrived.
struct MarksAnswered {
  PassName pass;
};

struct PassFailed {
  PassName pass;
  Error error;
};

// The sender has joined: it is up with every member.
struct Ready {
  uint32_t round = 0;
};

// All phases of a shutdown are smaller: they are counted by the lives of all workers (kLivesMax).
inline constexpr uint32_t kPhaseMax = uint32_t{1} << 30;

// Asks a worker that waits for the end of a graceful shutdown how it is. In even phases calls end,
// in odd ones references do.
struct ShutdownProbe {
  uint32_t phase = 0;
  uint64_t wave = 0;
};

// The answer to a probe, or unasked (wave 0) that something changed.
struct ShutdownReport {
  uint32_t phase = 0;
  uint64_t wave = 0;
  bool quiet = false;          // nothing runs, waits or is unacknowledged
  std::vector<WorkerId> lost;  // and not back, in rank order
  uint64_t activity = 0;       // messages handled so far
  bool all_arrived = false;    // the sender has heard that all have
  uint64_t lives = 0;          // that those whom it has not lost have had before, together
};

// Everything has ended: go. In a dynamic group: the sender goes.
struct Leave {
  bool graceful = true;
};

// The sender ends at once, and why.
struct Goodbye {
  Error error;
};

// A worker that another one has met, and in which of its lives.
struct MetMember {
  WorkerId worker;
  uint32_t life = 0;  // less than kLivesMax
  auto operator<=>(const MetMember&) const = default;
};

// Whether the sender has joined the group, and whom it has met and not lost. In a static group one
// says so that waits for long.
struct GroupView {
  bool member = false;
  std::vector<MetMember> met;
};

// In a dynamic group: the sender will leave. Ask it nothing new.
struct Leaving {};

// The answer, when all that the sender had asked the receiver is answered.
struct NothingMore {};

// Tensors on devices that the receiver had lent have been copied, or never will be.
struct LoansReturned {
  std::vector<LoanId> loans;
};

using MessageContent =
    std::variant<std::monostate, Call, Response, Cancel, Item, Credit, End, ForkRequest,
                 ForkConfirm, ChildAccept, UserDelete, ContextReached, ContextRelease, Gradients,
                 GradientsAnswered, PassFinish, PassFinished, PassFailed, Ready, ShutdownReport,
                 Leave, Goodbye, ShutdownProbe, GroupView, Leaving, NothingMore, Marks,
                 MarksAnswered, LoansReturned>;

// One message. Its type number is the position in MessageContent and in messages.proto.
struct Message {
  MessageContent content;
  [[nodiscard]] uint32_t type() const { return static_cast<uint32_t>(content.index()); }
};

// For people and traces: "Call", "ForkRequest", ….
[[nodiscard]] std::string_view message_name(uint32_t type);

// Whether it is of those by which workers come together and part, which go before all others.
[[nodiscard]] bool is_of_group(const Message& message);

// The causal id that names a message in traces: of its call, fork, context or autograd message.
[[nodiscard]] CausalId causal_id_of(const Message& message);

}  // namespace rehearsal
