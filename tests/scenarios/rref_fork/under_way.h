#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/trace.h"
#include "sim/explore/guide.h"

namespace rehearsal::sim::explore {

// The messages that make, use, pass on and drop a reference.
enum class Letter : uint8_t {
  create,        // the call whose result it names
  created,       // its answer: the owner knows the creator's fork
  fetch,         // a call for the value
  forks,         // a call whose arguments bring it to somebody else
  fork_request,  // and the four of each fork
  fork_confirm,
  child_accept,
  user_delete,
};
inline constexpr size_t kLetters = static_cast<size_t>(Letter::user_delete) + 1;
[[nodiscard]] std::string to_string(Letter letter);

// For each two of them the number of runs in which they are on their way together.
using Pairs = std::array<std::array<uint64_t, kLetters>, kLetters>;

// How a fault meets two messages.
struct Meetings {
  Pairs at{};     // both are on their way when it happens
  Pairs after{};  // one is, and the other one is sent because of it
};

// Stands between a search and its runs and counts the pairs of messages that are on their way
// together. A run stands for all that differ from it in the order of independent steps only: two
// messages are together if they are so in one of these, that is unless one must be sent after the
// other has been handled. A fault meets them if it happens to an end or the link of one of them
// while both are on their way.
class UnderWay final : public Guide, public Trace {
 public:
  // `search` outlives it.
  explicit UnderWay(Guide& search) : search_(search) {}

  void begin_run(const std::vector<Transition>& faults);
  // Of a run to its end.
  void count();

  [[nodiscard]] const Pairs& together() const { return together_; }  // in runs without a fault
  [[nodiscard]] const Meetings& with(Transition::Kind fault) const { return meetings_.at(fault); }

  size_t pick(const std::vector<Candidate>& enabled) override;
  uint64_t choose(uint64_t n) override { return search_.choose(n); }
  void received_from(size_t step) override;
  void on_event(const Event& event) override;

 private:
  static constexpr size_t kStepsMax = 256;
  using Steps = std::bitset<kStepsMax>;
  struct Step {
    Transition transition;
    Steps until;  // what happens before it, and itself
  };
  struct Message {
    Letter letter{};
    uint32_t from = 0;
    uint32_t to = 0;
    size_t sent = 0;
    std::optional<size_t> handled;
  };

  void on_call(const Event& event);
  void on_sent(const Event& event);
  [[nodiscard]] std::optional<Letter> letter_of(const Event& sent) const;
  // Whether the message is sent only once this step has happened.
  [[nodiscard]] bool begins_after(size_t step, const Message& message) const {
    return steps_[message.sent].until[step];
  }
  // Whether the message has been handled whenever this step happens.
  [[nodiscard]] bool is_over_at(size_t step, const Message& message) const {
    return message.handled && steps_[step].until[*message.handled];
  }
  void count_at_fault(size_t fault, const Message& one, const Message& other);

  Guide& search_;
  std::vector<Transition> faults_;
  std::vector<Step> steps_;
  bool is_running_ = false;
  std::vector<Message> messages_;
  std::map<std::tuple<WorkerId, WorkerId, uint64_t>, size_t> places_;  // of a frame's message
  std::map<CausalId, Letter> calls_;
  std::set<CausalId> requested_;  // forks

  Pairs together_{};
  std::map<Transition::Kind, Meetings> meetings_{
      {Transition::Kind::cut, {}}, {Transition::Kind::crash, {}}, {Transition::Kind::give_up, {}}};
};

}  // namespace rehearsal::sim::explore
