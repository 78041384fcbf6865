#include "core/rpc/mutants.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace rehearsal {
namespace {

constexpr std::array<std::pair<std::string_view, bool Mutants::*>, 7> kSwitches = {{
    {"no_deduplication", &Mutants::no_deduplication},
    {"no_confirmation_gate", &Mutants::no_confirmation_gate},
    {"confirm_never_refuses", &Mutants::confirm_never_refuses},
    {"delete_before_answer", &Mutants::delete_before_answer},
    {"pins_survive_fencing", &Mutants::pins_survive_fencing},
    {"no_fencing", &Mutants::no_fencing},
    {"forget_dead_epochs", &Mutants::forget_dead_epochs},
}};

}  // namespace

Mutants Mutants::from_names(const std::vector<std::string>& names) {
  Mutants mutants;
  for (const std::string& name : names) {
    bool known = false;
    for (const auto& [text, flag] : kSwitches) {
      if (text != name) continue;
      mutants.*flag = true;
      known = true;
    }
    if (!known) throw std::invalid_argument("there is no mutant named '" + name + "'");
  }
  return mutants;
}

std::vector<std::string> mutant_names() {
  std::vector<std::string> names;
  for (const auto& [text, flag] : kSwitches) names.emplace_back(text);
  return names;
}

}  // namespace rehearsal
