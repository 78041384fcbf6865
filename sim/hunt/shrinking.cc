#include "sim/hunt/shrinking.h"

#include <algorithm>

#include "sim/hunt/choice_lists.h"

namespace rehearsal::sim {
namespace {

// An event that is held back so often goes last of all that may come before it.
constexpr uint64_t kHeldLong = uint64_t{1} << 16;

// Whether both hold back events of one chain.
bool hold_one_chain(const Override& one, const Override& other) {
  Key key = other.key;
  key.number = one.key.number;
  return is_deviation(one) && key == one.key;
}

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
    } while (merge_holds() || lower_values());
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

  // A strategy lets a chain wait for one step after the other, where one longer wait may do as
  // well. Whether anything could go.
  bool merge_holds() {
    for (size_t i = 0; i < choices_.size() && trial_.may_go_on(); ++i)
      if (is_deviation(choices_[i]) && (hold_for_its_chain(i) || hold_for_another(i))) return true;
    return false;
  }

  bool hold_for_its_chain(size_t i) {
    const Override kept = choices_[i];
    std::vector<Override> merged = choices_;
    std::erase_if(merged, [&kept](const Override& choice) {
      return choice.key != kept.key && hold_one_chain(kept, choice);
    });
    if (merged.size() == choices_.size()) return false;
    const auto place = std::find_if(merged.begin(), merged.end(), [&kept](const Override& choice) {
      return choice.key == kept.key;
    });
    place->value = kHeldLong;
    return accept(std::move(merged));
  }

  bool hold_for_another(size_t i) {
    for (size_t j = 0; j < choices_.size() && trial_.may_go_on(); ++j) {
      if (j == i || !is_deviation(choices_[j])) continue;
      std::vector<Override> merged = choices_;
      merged[i].value = std::max(choices_[i].value + choices_[j].value, kHeldLong);
      merged.erase(merged.begin() + static_cast<ptrdiff_t>(j));
      if (accept(std::move(merged))) return true;
    }
    return false;
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
