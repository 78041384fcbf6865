#include "sim/hunt/crash_report.h"

#include <signal.h>

#include <array>
#include <utility>

namespace rehearsal::sim {
namespace {

constexpr std::array<int, 5> kFatalSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void on_fatal_signal(int number, siginfo_t* info, void* context) {
  die_of_signal(number, info->si_addr, context);
}

}  // namespace

CrashReport::CrashReport(LastWords words) : words_(std::move(words)) {
  set_last_words(&words_);
  use_signal_stack();
  for (const int number : kFatalSignals) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_sigaction = on_fatal_signal;
    action.sa_flags = SA_ONSTACK | SA_SIGINFO;
    sigaction(number, &action, nullptr);
  }
}

CrashReport::~CrashReport() {
  for (const int number : kFatalSignals) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_sigaction == on_fatal_signal) signal(number, SIG_DFL);
  }
  set_last_words(nullptr);
}

}  // namespace rehearsal::sim
