#pragma once

#include <string>

namespace rehearsal::sim {

// Says how to repeat a run that ends its process: a failed check, a segmentation fault. While it
// lives, a fatal signal writes these texts and ends the process with exit status 1. One at
// a time. Where somebody else, such as a sanitizer, already handles a signal, that stays.
class CrashReport {
 public:
  struct Texts {
    std::string standard_output;      // before the signal's number …
    std::string standard_output_end;  // … and behind it; both empty: nothing is written there
    std::string standard_error;
  };

  explicit CrashReport(Texts texts);
  ~CrashReport();
  CrashReport(const CrashReport&) = delete;
  CrashReport& operator=(const CrashReport&) = delete;
};

}  // namespace rehearsal::sim
