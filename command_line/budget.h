// How much a search may take.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "command_line/terminal.h"

namespace rehearsal::command_line {

// Runs are the same on every machine, and time of processors nearly so, however busy it is; time on
// the wall is what a person waits. A time of processors is also ten times as much on the wall at
// most: who waits takes none.
struct Budget {
  enum class Unit : uint8_t { seconds, processor_seconds, runs };
  Unit unit = Unit::seconds;
  double amount = 0;

  [[nodiscard]] bool empty() const { return amount <= 0; }
};

// "60s", "5m", "2h" or "500ms"; "60s-cpu", of all processes of the search together; "500runs".
// Throws WrongUse, naming the flag, if it is none.
[[nodiscard]] Budget parse_budget(const std::string& flag, const std::string& text);

// Measures what has been spent of a budget since this was made.
class Spending {
 public:
  // `children`: the processor time, in seconds, of processes that work for this one and have not
  // ended; null: there are none.
  explicit Spending(const Budget& budget, std::function<double()> children = nullptr);

  // Whether something is left when so many runs have been made; `share`: of that part of it, or of
  // several times as much.
  [[nodiscard]] bool left(uint64_t runs, double share = 1) const;

  // Whether it ends in the middle of a run, as one of any time does.
  [[nodiscard]] bool is_of_time() const { return budget_.unit != Budget::Unit::runs; }

 private:
  [[nodiscard]] double processor_seconds() const;

  const Budget budget_;
  const std::function<double()> children_;
  const double processor_before_;
  Stopwatch stopwatch_;
};

// Longer than the watchdog takes to tell of a run that hangs.
inline constexpr double kSearchOvertimeSeconds = 15;

// The runs that are under way when the time of a search is up may go on for a while: so long.
class Overtime {
 public:
  // `spending` outlives it.
  Overtime(const Spending& spending, double seconds) : spending_(spending), seconds_(seconds) {}

  // Whether that is over, too. To be asked again and again once so many runs have been made;
  // `share` as in Spending::left.
  [[nodiscard]] bool over(uint64_t runs, double share = 1);

 private:
  const Spending& spending_;
  const double seconds_;
  std::optional<Stopwatch> since_up_;
};

}  // namespace rehearsal::command_line
