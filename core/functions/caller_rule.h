#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rehearsal {

// Which workers may call something. Each entry is the name of a worker, "trainer0", or that of all
// that a program declares by a Count, "trainer": an entry that does not end in a digit admits the
// names that continue it by digits alone, too.
class CallerRule {
 public:
  CallerRule() = default;  // admits everybody
  // Throws std::invalid_argument if there is no entry, or an empty one: what nobody may call is not
  // registered.
  explicit CallerRule(std::vector<std::string> entries);

  [[nodiscard]] bool admits(std::string_view caller) const;
  [[nodiscard]] bool admits_everybody() const { return entries_.empty(); }

  // "'master', 'trainer'".
  [[nodiscard]] std::string text() const;

 private:
  std::vector<std::string> entries_;
};

}  // namespace rehearsal
