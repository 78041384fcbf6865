#include "command_line/budget.h"

#include <sys/resource.h>

#include <algorithm>
#include <map>

#include "command_line/wrong_use.h"

namespace rehearsal::command_line {
namespace {

constexpr double kWallToProcessors = 10;

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double seconds_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

}  // namespace

Budget parse_budget(const std::string& flag, const std::string& text) {
  using enum Budget::Unit;
  static const std::map<std::string, Budget> units = {{"ms", {seconds, 0.001}},
                                                      {"s", {seconds, 1}},
                                                      {"m", {seconds, 60}},
                                                      {"h", {seconds, 3600}},
                                                      {"s-cpu", {processor_seconds, 1}},
                                                      {"m-cpu", {processor_seconds, 60}},
                                                      {"h-cpu", {processor_seconds, 3600}},
                                                      {"runs", {runs, 1}}};
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto unit = units.find(text.substr(digits));
  if (digits == 0 || digits > 9 || unit == units.end())
    throw WrongUse(flag + " " + text +
                   ": type a time, for example 60s, 5m or 2h, a time of processors, 60s-cpu, or " +
                   "a number of runs, 500runs");
  return {unit->second.unit, std::stod(text.substr(0, digits)) * unit->second.amount};
}

Spending::Spending(const Budget& budget, std::function<double()> children)
    : budget_(budget), children_(std::move(children)), processor_before_(processor_seconds()) {}

double Spending::processor_seconds() const {
  return seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN) + (children_ ? children_() : 0);
}

bool Spending::left(uint64_t runs, double share) const {
  const double whole = budget_.amount * share;
  switch (budget_.unit) {
    case Budget::Unit::runs:
      return static_cast<double>(runs) < whole;
    case Budget::Unit::processor_seconds:
      return processor_seconds() - processor_before_ < whole &&
             stopwatch_.seconds() < kWallToProcessors * whole;
    case Budget::Unit::seconds:
      break;
  }
  return stopwatch_.seconds() < whole;
}

bool Overtime::over(uint64_t runs, double share) {
  if (!spending_.is_of_time() || spending_.left(runs, share)) return false;
  if (!since_up_) since_up_.emplace();
  return since_up_->seconds() > seconds_;
}

}  // namespace rehearsal::command_line
