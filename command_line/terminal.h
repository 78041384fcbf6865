// Wall time and progress for the person at the terminal. The one place in scenarios that reads a
// clock; nothing it measures reaches a run.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rehearsal::command_line {

class Stopwatch {
 public:
  Stopwatch();
  [[nodiscard]] double seconds() const;

 private:
  std::chrono::steady_clock::time_point start_;
};

// One line on standard error that is drawn over again; nothing at all unless that is a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Replaces the line, at most ten times a second; cut to the width of the terminal.
  void show(const std::string& text);

  // Removes it, so that other output can be written.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  Stopwatch since_start_;
  double last_ = -1;
};

}  // namespace rehearsal::command_line
