#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/frame.h"
#include "core/base/time.h"

namespace rehearsal::net_fake {

// A rule's view of a frame that is about to travel.
struct FrameView {
  WorkerId from;
  WorkerId to;
  Lane lane{};
  FrameKind kind{};
  uint64_t number = 0;   // the session's sequence number; 0 for frames without a message
  uint64_t attempt = 0;  // 0 when it is sent for the first time
  uint64_t bytes = 0;
  uint32_t message_type = 0;  // as the network's inspector reads it; 0 without one
  // Sent before it the same way on the same connection.
  uint64_t frames_before = 0;
  uint64_t bytes_before = 0;
};

// The answer of a rule.
class Action {
 public:
  [[nodiscard]] static Action pass() { return {}; }

  // The frame arrives after exactly `delay`, behind what is on its lane.
  [[nodiscard]] static Action deliver_after(Duration delay) { return {Type::deliver, delay}; }

  // The link is lost at this frame: it is gone, and so is any suffix of what was sent before.
  [[nodiscard]] static Action cut() { return {Type::cut, {}}; }

  [[nodiscard]] bool is_pass() const { return type_ == Type::pass; }
  [[nodiscard]] bool is_cut() const { return type_ == Type::cut; }
  [[nodiscard]] Duration delay() const { return delay_; }

 private:
  enum class Type : uint8_t { pass, deliver, cut };
  Action() = default;
  Action(Type type, Duration delay) : type_(type), delay_(delay) {}

  Type type_ = Type::pass;
  Duration delay_{};
};

// A fault made by hand. Called for every frame, on the sender's strand; it must not call a node.
using Rule = std::function<Action(const FrameView&)>;

// Cuts every connection, again and again, at the frame behind `frames` others of the same way, or
// at the one with which more than `bytes` would have gone one way (without headers).
[[nodiscard]] Rule cut_after_frames(uint64_t frames);
[[nodiscard]] Rule cut_after_bytes(uint64_t bytes);

// The rules in force, in the order in which they were made: the first answer that is not pass wins.
class Rules {
 public:
  // Keeps its rule in force. May outlive the network.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&&) = default;
    Guard& operator=(Guard&& other) noexcept;
    ~Guard() { remove(); }
    void remove();

   private:
    friend class Rules;
    std::shared_ptr<Rule> rule_;
  };

  [[nodiscard]] Guard add(Rule rule);
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] Action judge(const FrameView& frame);

 private:
  std::vector<std::shared_ptr<Rule>> rules_;  // an empty Rule has been removed
};

}  // namespace rehearsal::net_fake
