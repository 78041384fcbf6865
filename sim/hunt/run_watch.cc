#include "sim/hunt/run_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "sim/hunt/last_words.h"
#include "sim/world/run_pulse.h"

namespace rehearsal::sim {
namespace {

// So many interruptions see the same event before the run counts as hanging.
constexpr int kInterruptions = 4;

// A debugger lets it pass without a word, and nobody uses it for anything else.
constexpr int kTimerSignal = SIGVTALRM;

constexpr int kSanitizersAreSlower = 10;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasSanitizer = true;
#elif defined(__has_feature)
constexpr bool kHasSanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kHasSanitizer = false;
#endif

// The run of a thread that is timed.
struct Timed {
  timer_t timer{};
  LastWords words;
  uint64_t beats = 0;  // that the last interruption has seen
  int still = 0;       // interruptions that have seen them
};

// The timer interrupts the thread of the run, whose handler has no other way to this.
thread_local Timed* timed = nullptr;

// Calls nothing that a handler must not.
bool is_traced() {
  std::array<char, 4096> text{};
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  constexpr std::string_view kTracer = "TracerPid:\t";
  const std::string_view status(text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
  const size_t place = status.find(kTracer);
  return place != std::string_view::npos && place + kTracer.size() < status.size() &&
         status[place + kTracer.size()] != '0';
}

bool is_under_valgrind() {
  const char* const preloaded = std::getenv("LD_PRELOAD");
  return preloaded != nullptr && std::string_view(preloaded).find("vgpreload") != std::string::npos;
}

void on_timer(int, siginfo_t*, void* context) {
  const RunPulse* const run = shown_run();
  if (timed == nullptr || run == nullptr) return;
  const int error = errno;
  if (timed->beats != run->beats || is_traced()) {
    timed->beats = run->beats;
    timed->still = 0;
  } else if (++timed->still >= kInterruptions) {
    die_of_hang(context, timed->words);
  }
  errno = error;
}

bool handle_timer_signal() {
  struct sigaction present {};
  sigaction(kTimerSignal, nullptr, &present);
  if (present.sa_sigaction == on_timer) return true;
  if (present.sa_handler != SIG_DFL) return false;
  struct sigaction action {};
  action.sa_sigaction = on_timer;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO | SA_RESTART;
  return sigaction(kTimerSignal, &action, nullptr) == 0;
}

bool start_timer(timer_t& timer, Duration interval) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kTimerSignal;
#ifdef sigev_notify_thread_id
  event.sigev_notify_thread_id = static_cast<pid_t>(syscall(SYS_gettid));
#else
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
#endif
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) return false;
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t nanoseconds = std::max<int64_t>(interval.count(), 1);
  itimerspec times{};
  times.it_value =
      times.it_interval = {.tv_sec = nanoseconds / kSecond, .tv_nsec = nanoseconds % kSecond};
  if (timer_settime(timer, 0, &times, nullptr) == 0) return true;
  timer_delete(timer);
  return false;
}

}  // namespace

RunWatch::RunWatch(std::shared_ptr<const RunPulse> pulse, Duration watchdog,
                   const std::string& reproduction)
    : pulse_(std::move(pulse)), shown_before_(shown_run()) {
  show_run(pulse_.get());
  if (watchdog <= Duration::zero() || timed != nullptr || is_under_valgrind()) return;
  use_signal_stack();
  if (!handle_timer_signal()) return;
  const Duration longest = kHasSanitizer ? watchdog * kSanitizersAreSlower : watchdog;
  timed = new Timed{.words = {.standard_output = {},
                              .standard_error = "repeat it with:\n" + reproduction + "\n"}};
  timed_ = start_timer(timed->timer, longest / kInterruptions);
  if (timed_) return;
  delete timed;
  timed = nullptr;
}

RunWatch::~RunWatch() {
  show_run(shown_before_);
  if (!timed_) return;
  timer_delete(timed->timer);
  const Timed* const ended = timed;
  timed = nullptr;
  delete ended;
}

}  // namespace rehearsal::sim
