#include "command_line/ended_process.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "command_line/child_process.h"
#include "sim/hunt/last_words.h"

namespace rehearsal::command_line {
namespace {

constexpr std::string_view kCheck = ": check failed: ";

// The line of `text` that holds this place.
std::string line_at(const std::string& text, size_t place) {
  const size_t start = place == 0 ? 0 : text.rfind('\n', place - 1) + 1;
  return text.substr(start, text.find('\n', place) - start);
}

// The stack that a process tells behind this line: each of its lines begins with two spaces.
std::string stack_behind(const std::string& text, size_t line) {
  std::string stack;
  for (size_t end = text.find('\n', line);
       end != std::string::npos && text.compare(end + 1, 2, "  ") == 0;
       end = text.find('\n', end + 1))
    stack += "\n" + line_at(text, end + 1);
  return stack;
}

// "core/rref/rref_owner.cc:12: check failed: !gone with 3 (in …)" becomes a failure of the check,
// so that two of different checks are not taken for one.
sim::RunFailure failed_check(const std::string& errors, size_t mark) {
  const std::string line = line_at(errors, mark);
  const std::string condition = line.substr(line.find(kCheck) + kCheck.size());
  const size_t end = std::min(condition.find(" with "), condition.find(" (in "));
  return {"process", "check " + condition.substr(0, end), line};
}

// "rehearsal: the run hangs in 'hold' at worker 'ps': …"
sim::RunFailure hang(const std::string& errors, size_t mark) {
  const std::string line = line_at(errors, mark);
  const std::string place = line.substr(sim::kHangLine.size());
  const size_t worker = std::min(place.find(" at worker "), place.find(": "));
  return {
      "watchdog", place.substr(0, worker),
      "the run hangs" + place.substr(std::min(worker, place.size())) + stack_behind(errors, mark)};
}

}  // namespace

sim::RunFailure failure_of_process(const std::string& why, const std::string& errors) {
  if (const size_t mark = errors.rfind(kNotStartedLine); mark != std::string::npos)
    throw std::runtime_error(line_at(errors, mark));
  const size_t signal = errors.rfind(sim::kSignalLine);
  if (const size_t mark = errors.rfind(kCheck); mark != std::string::npos)
    return failed_check(errors, mark);
  if (const size_t mark = errors.rfind(sim::kHangLine); mark != std::string::npos)
    return hang(errors, mark);
  const std::string message = "the process of this run ended without a result";
  if (signal == std::string::npos) return {"process", why, message};
  const std::string line = line_at(errors, signal);
  const size_t place = std::min(line.find(" in "), line.size());
  return {"process", why, message + line.substr(place) + stack_behind(errors, signal)};
}

}  // namespace rehearsal::command_line
