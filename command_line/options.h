// The options of a scenario: what `--set key=value` may say, with defaults for both sizes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal {

// The values of one run. Every option of the table has one.
class Options {
 public:
  using Value = std::variant<int64_t, double, std::string>;

  // Each throws std::out_of_range if the table has no such option of this type.
  [[nodiscard]] int64_t integer(const std::string& name) const;
  [[nodiscard]] double real(const std::string& name) const;
  [[nodiscard]] const std::string& text(const std::string& name) const;

  // As text, by name: what a report shows.
  [[nodiscard]] std::map<std::string, std::string> all() const;

  // The shortest list of key=value that gives these values to `rehearsal run`.
  [[nodiscard]] const std::vector<std::string>& assignments() const { return assignments_; }

 private:
  friend class OptionTable;
  std::map<std::string, Value> values_;
  std::vector<std::string> assignments_;
  std::set<std::string> given_;  // names
};

// The options that a scenario accepts. Every table has `size`, which is `tiny` or `full` and
// chooses the defaults of the others.
class OptionTable {
 public:
  struct Integer {
    int64_t full;
    int64_t tiny;
    int64_t min;
    int64_t max;
    std::string meaning;
    // If not equal: what `drawn` gives instead of `tiny`.
    int64_t drawn_min = 0;
    int64_t drawn_max = 0;
  };
  struct Real {
    double full;
    double tiny;
    double min;
    double max;
    std::string meaning;
  };
  struct Choice {
    std::vector<std::string> allowed;  // the first is the default
    std::string meaning;
  };
  struct Path {
    std::string otherwise;  // the default
    std::string meaning;
  };

  OptionTable();

  OptionTable& integer(const std::string& name, Integer option);
  OptionTable& real(const std::string& name, Real option);
  OptionTable& choice(const std::string& name, Choice option);
  // A file. It becomes absolute, so that every process means the same one.
  OptionTable& path(const std::string& name, Path option);

  // Values for these assignments (key=value; the last one of a key wins), the rest by default.
  // Throws WrongUse, in one line that says what is allowed, for anything else.
  [[nodiscard]] Options parse(const std::vector<std::string>& assignments,
                              const std::string& default_size) const;

  // These options, but with a value that the seed draws for each whole number that has a range to
  // be drawn from. A value that `parse` was given stays; if that was `size`, all stays.
  [[nodiscard]] Options drawn(const Options& options, Seed seed) const;

  // These options with one whole number smaller: at its least, halfway to its least, one less.
  [[nodiscard]] std::vector<Options> smaller(const Options& options) const;

  // As text, by name, the values that workers on different machines must have in common: all but
  // the names of files.
  [[nodiscard]] std::map<std::string, std::string> shared(const Options& options) const;

  struct Line {
    std::string name;
    std::string otherwise;  // the default at size full
    std::string allowed;
    std::string meaning;
  };
  // In order of declaration.
  [[nodiscard]] std::vector<Line> lines() const;

 private:
  using Kind = std::variant<Integer, Real, Choice, Path>;
  struct Entry {
    std::string name;
    Kind kind;
  };
  const Entry* find(const std::string& name) const;
  std::vector<std::string> names() const;

  std::vector<Entry> entries_;
};

}  // namespace rehearsal
