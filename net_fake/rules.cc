#include "net_fake/rules.h"

#include <utility>

namespace rehearsal::net_fake {

Rule cut_after_frames(uint64_t frames) {
  return [frames](const FrameView& frame) {
    return frame.frames_before < frames ? Action::pass() : Action::cut();
  };
}

Rule cut_after_bytes(uint64_t bytes) {
  return [bytes](const FrameView& frame) {
    return frame.bytes_before + frame.bytes <= bytes ? Action::pass() : Action::cut();
  };
}

Rules::Guard& Rules::Guard::operator=(Guard&& other) noexcept {
  remove();
  rule_ = std::move(other.rule_);
  return *this;
}

void Rules::Guard::remove() {
  if (rule_) *rule_ = nullptr;
  rule_.reset();
}

Rules::Guard Rules::add(Rule rule) {
  Guard guard;
  guard.rule_ = std::make_shared<Rule>(std::move(rule));
  rules_.push_back(guard.rule_);
  return guard;
}

Action Rules::judge(const FrameView& frame) {
  std::erase_if(rules_, [](const auto& rule) { return !*rule; });
  for (const auto& rule : rules_) {
    const Action action = (*rule)(frame);
    if (!action.is_pass()) return action;
  }
  return Action::pass();
}

}  // namespace rehearsal::net_fake
