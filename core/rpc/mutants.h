#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearsal {

// Test-only switches: each leaves out one rule of the protocol, so that a test can show that the
// simulator finds its absence. All are off in a product.
struct Mutants {
  bool no_deduplication = false;       // a frame received twice is handled twice
  bool no_confirmation_gate = false;   // user code starts before its references are confirmed
  bool confirm_never_refuses = false;  // a fork of a value that is gone is confirmed
  bool delete_before_answer = false;   // UserDelete leaves before its registration is answered
  bool pins_survive_fencing = false;   // pins stay although their holder is fenced
  bool no_fencing = false;             // a silent peer is never given up
  bool forget_dead_epochs = false;     // late gradients of a failed pass are taken

  // Throws std::invalid_argument for a name that is none of these.
  static Mutants from_names(const std::vector<std::string>& names);
};

// All names, for messages to people.
[[nodiscard]] std::vector<std::string> mutant_names();

}  // namespace rehearsal
