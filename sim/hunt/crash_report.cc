#include "sim/hunt/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <utility>

namespace rehearsal::sim {
namespace {

constexpr int kFailedStatus = 1;
constexpr std::array<int, 5> kFatalSignals = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

// A signal handler has no other way to its data than a variable of the process.
const CrashReport::Texts* current_texts = nullptr;

void write_text(int descriptor, const std::string& text) {
  if (write(descriptor, text.data(), text.size()) < 0) return;
}

void on_fatal_signal(int number) {
  const CrashReport::Texts* texts = std::exchange(current_texts, nullptr);
  if (texts != nullptr) {
    if (!texts->standard_output.empty()) {
      const std::array<char, 2> digits = {static_cast<char>('0' + number / 10 % 10),
                                          static_cast<char>('0' + number % 10)};
      write_text(STDOUT_FILENO, texts->standard_output);
      if (write(STDOUT_FILENO, digits.data(), digits.size()) < 0) _exit(kFailedStatus);
      write_text(STDOUT_FILENO, texts->standard_output_end);
    }
    write_text(STDERR_FILENO, texts->standard_error);
  }
  _exit(kFailedStatus);
}

}  // namespace

CrashReport::CrashReport(Texts texts) {
  current_texts = std::make_unique<Texts>(std::move(texts)).release();
  for (const int number : kFatalSignals) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = on_fatal_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(number, &action, nullptr);
  }
}

CrashReport::~CrashReport() {
  for (const int number : kFatalSignals) {
    struct sigaction present {};
    sigaction(number, nullptr, &present);
    if (present.sa_handler == on_fatal_signal) signal(number, SIG_DFL);
  }
  delete std::exchange(current_texts, nullptr);
}

}  // namespace rehearsal::sim
