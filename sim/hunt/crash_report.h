#pragma once

#include "sim/hunt/last_words.h"

namespace rehearsal::sim {

// Says what ended a process that a run ends: a failed check, a segmentation fault, an exception
// that nobody caught. While it lives, a fatal signal writes its name, the worker and the function
// that was running, and the stack to standard error, then these words, and ends the process with
// exit status 1, or as the words say. One at a time. Where somebody else, such as a sanitizer,
// already handles a signal, that stays.
class CrashReport {
 public:
  explicit CrashReport(LastWords words);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;

 private:
  const LastWords words_;
};

}  // namespace rehearsal::sim
