#include "sim/shrinking.h"

#include <algorithm>

namespace rehearsal::sim {
namespace {

class Shrinking {
 public:
  Shrinking(std::vector<Override> choices, const ShrinkTrial& trial)
      : choices_(std::move(choices)), trial_(trial) {}

  std::vector<Override> run() {
    if (choices_.empty() || accept({})) return std::move(choices_);
    drop_kinds();
    do {
      while (drop_stretches()) {
      }
    } while (lower_values());
    return std::move(choices_);
  }

 private:
  bool accept(std::vector<Override> candidate) {
    if (!trial_.may_go_on() || !trial_.fails(candidate)) return false;
    choices_ = std::move(candidate);
    return true;
  }

  void drop_kinds() {
    for (size_t kind = 0; kind < net_fake::kDecisionKinds; ++kind) {
      std::vector<Override> rest = choices_;
      std::erase_if(rest, [kind](const Override& choice) {
        return static_cast<size_t>(choice.key.kind) == kind;
      });
      if (rest.size() < choices_.size()) accept(std::move(rest));
    }
  }

  // Whether anything could go.
  bool drop_stretches() {
    bool any = false;
    for (size_t length = std::max<size_t>(choices_.size() / 2, 1); length > 0; length /= 2) {
      for (size_t start = 0; start < choices_.size() && trial_.may_go_on();) {
        std::vector<Override> rest = choices_;
        const auto first = rest.begin() + static_cast<ptrdiff_t>(start);
        rest.erase(first, rest.begin() +
                              static_cast<ptrdiff_t>(std::min(start + length, choices_.size())));
        if (accept(std::move(rest))) {
          any = true;
        } else {
          start += length;
        }
      }
    }
    return any && trial_.may_go_on();
  }

  // Whether any could be lower, so that others may have become superfluous.
  bool lower_values() {
    bool any = false;
    for (size_t i = 0; i < choices_.size(); ++i) any = lower_value(i) || any;
    return any && trial_.may_go_on();
  }

  bool lower_value(size_t i) {
    const uint64_t before = choices_[i].value;
    uint64_t enough = 0;  // too small
    while (choices_[i].value - enough > 1 && trial_.may_go_on()) {
      std::vector<Override> candidate = choices_;
      candidate[i].value = enough + (choices_[i].value - enough) / 2;
      const uint64_t tried = candidate[i].value;
      if (!accept(std::move(candidate))) enough = tried;
    }
    return choices_[i].value < before;
  }

  std::vector<Override> choices_;
  const ShrinkTrial& trial_;
};

}  // namespace

std::vector<Override> shrink_choices(std::vector<Override> choices, const ShrinkTrial& trial) {
  return Shrinking(std::move(choices), trial).run();
}

}  // namespace rehearsal::sim
