#pragma once

#include <string>
#include <string_view>

namespace rehearsal::sim {

struct RunPulse;

// The texts that the process of a run ends with if the run ends it. In both `@oracle@`, `@object@`
// and `@message@` become those of the failure that the run has become by then, without quotes and
// backslashes, so that a text may be JSON.
struct LastWords {
  std::string standard_output;  // empty: nothing is written there
  std::string standard_error;
  // The process ends by the signal that has come, for a parent that looks at that; else with exit
  // status 1.
  bool ends_by_signal = false;
};

// The beginnings of the line that says what has happened, on standard error before the stack and
// the text; each line of the stack begins with two spaces.
inline constexpr std::string_view kSignalLine = "rehearsal: the run's process got ";
inline constexpr std::string_view kHangLine = "rehearsal: the run hangs in ";

// The words of this process: null, or those of the CrashReport that lives.
[[nodiscard]] const LastWords* last_words();
void set_last_words(const LastWords* words);

// The run of the calling thread, which the line names; null: none.
[[nodiscard]] const RunPulse* shown_run();
void show_run(const RunPulse* run);

// From here on signal handlers of the calling thread have a stack of their own, so that one that is
// used up can be told of. Where there is one already, that stays.
void use_signal_stack();

// For signal handlers on the thread of the run; `context` is their third argument. Each says what
// has happened, tells the stack of whoever was running, and ends the process. Names and source
// lines take memory and files: where these cannot be had any more, since that is what has gone
// wrong, the stack is told as addresses.
[[noreturn]] void die_of_signal(int signal, const void* fault_address, void* context);
[[noreturn]] void die_of_hang(void* context, const LastWords& words);

}  // namespace rehearsal::sim
