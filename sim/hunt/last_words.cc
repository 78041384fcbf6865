#include "sim/hunt/last_words.h"

#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "core/fibers/default_generator.h"
#include "sim/world/call_stack.h"
#include "sim/world/clock_guard.h"
#include "sim/world/run_pulse.h"

// Of libgcc, which has no header for it.
extern "C" const void* _Unwind_Find_FDE(void* code, void* bases);

namespace rehearsal::sim {
namespace {

constexpr int kFailedStatus = 1;
constexpr unsigned kNamesSecondsMax = 10;  // for names and source lines of a stack
constexpr size_t kSignalStackBytes = 512 * 1024;
constexpr int kFramesMax = 64;
constexpr uint64_t kNearBytes = 64 * 1024;

// A signal handler has no other way to its data than variables of the process, and of the thread on
// which it runs.
const LastWords* words_of_process = nullptr;
thread_local const RunPulse* run_of_thread = nullptr;

// Text of limited length that needs no memory. The rest of a long one is cut off.
class Line {
 public:
  Line& operator<<(std::string_view text) {
    for (const char letter : text)
      if (size_ < text_.size()) text_[size_++] = letter;
    return *this;
  }
  Line& operator<<(int number) {
    if (number >= 10) *this << number / 10;
    const char digit = static_cast<char>('0' + number % 10);
    return *this << std::string_view(&digit, 1);
  }
  [[nodiscard]] std::string_view text() const { return {text_.data(), size_}; }

 private:
  std::array<char, 1000> text_{};
  size_t size_ = 0;
};

void write_text(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(descriptor, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<size_t>(count));
  }
}

// The failure that the run has become.
struct Death {
  std::string_view oracle;
  Line object;
  Line message;
  int signal = 0;  // that came; zero: none
};

// `name` without what ends a text in JSON.
Line plain(std::string_view name) {
  Line line;
  for (const char& letter : name)
    line << (letter == '"' || letter == '\\' || letter < ' ' ? "'" : std::string_view(&letter, 1));
  return line;
}

void write_filled_in(int descriptor, std::string_view text, const Death& death) {
  const std::array<std::pair<std::string_view, std::string_view>, 3> marks = {
      {{"@oracle@", death.oracle},
       {"@object@", death.object.text()},
       {"@message@", death.message.text()}}};
  while (!text.empty()) {
    size_t next = text.size();
    const std::pair<std::string_view, std::string_view>* mark = nullptr;
    for (const auto& candidate : marks) {
      const size_t place = text.find(candidate.first);
      if (place >= next) continue;
      next = place;
      mark = &candidate;
    }
    write_text(descriptor, text.substr(0, next));
    text.remove_prefix(next);
    if (mark == nullptr) continue;
    write_text(descriptor, mark->second);
    text.remove_prefix(mark->first.size());
  }
}

// ---- who runs ---------------------------------------------------------------

const std::string* running_worker() {
  return run_of_thread == nullptr ? nullptr : run_of_thread->name;
}

// The code that runs on this thread: the function of an execution, a worker's main, or none of
// these.
Line running_code() {
  const Execution* const execution = fibers::running_execution();
  const std::string* const worker = running_worker();
  Line line;
  if (execution == nullptr) return line << (worker == nullptr ? "no worker's code" : "no function");
  if (worker != nullptr && execution->label() == *worker) return line << "its main";
  return line << "'" << plain(execution->label()).text() << "'";
}

// " at worker 'ps'"
Line worker_place() {
  Line line;
  if (const std::string* const worker = running_worker())
    line << " at worker '" << plain(*worker).text() << "'";
  return line;
}

// ---- the stack --------------------------------------------------------------

// Only one thread tells; what it tells of is kept here for the case that it cannot go on.
std::array<void*, kFramesMax> frames;
size_t frame_count = 0;
const Death* told = nullptr;
const LastWords* told_with = nullptr;

uint64_t program_counter(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#else
  return 0;
#endif
}

bool has_unwind_table(uint64_t code) {
  std::array<void*, 3> bases{};  // a dwarf_eh_bases
  return _Unwind_Find_FDE(reinterpret_cast<void*>(code), bases.data()) != nullptr;
}

// A linker's stub between a call and its function has no table by which the unwinder could go on,
// and it would end the stack there. Sets `context` to the caller, whose address lies on the stack
// below what the stub may have pushed, or in the link register.
void leave_stub(ucontext_t& context) {
#if defined(__x86_64__)
  constexpr uint64_t kPushedMax = 2;
  auto& registers = context.uc_mcontext.gregs;
  if (has_unwind_table(static_cast<uint64_t>(registers[REG_RIP]))) return;
  const auto* const top = reinterpret_cast<const uint64_t*>(registers[REG_RSP]);
  for (uint64_t i = 0; i <= kPushedMax; ++i) {
    if (!has_unwind_table(top[i] - 1)) continue;
    registers[REG_RIP] = static_cast<greg_t>(top[i] - 1);
    registers[REG_RSP] += static_cast<greg_t>((i + 1) * sizeof(uint64_t));
    return;
  }
#elif defined(__aarch64__)
  auto& machine = context.uc_mcontext;
  if (!has_unwind_table(machine.pc) && has_unwind_table(machine.regs[30] - 4))
    machine.pc = machine.regs[30] - 4;
#endif
}

uint64_t stack_pointer(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.sp;
#else
  return 0;
#endif
}

// From the function that was interrupted on; all of it if that cannot be told.
std::span<void*> interrupted_frames(const ucontext_t& context) {
  frame_count = static_cast<size_t>(std::max(0, backtrace(frames.data(), kFramesMax)));
  const std::span<void*> all(frames.data(), frame_count);
  const auto first =
      std::find(all.begin(), all.end(), reinterpret_cast<void*>(program_counter(context)));
  if (first == all.end()) return all;
  // It is where the function was and not, as in the others, behind the call that it has made.
  *first = static_cast<char*>(*first) + 1;
  return all.subspan(static_cast<size_t>(first - all.begin()));
}

[[noreturn]] void end_process() {
  if (told_with != nullptr) {
    write_filled_in(STDOUT_FILENO, told_with->standard_output, *told);
    write_filled_in(STDERR_FILENO, told_with->standard_error, *told);
  }
  if (told->signal == 0 || told_with == nullptr || !told_with->ends_by_signal) _exit(kFailedStatus);
  signal(told->signal, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, told->signal);
  raise(told->signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  _exit(kFailedStatus);
}

// The names could not be had.
void tell_addresses(int) {
  backtrace_symbols_fd(frames.data(), static_cast<int>(frame_count), STDERR_FILENO);
  end_process();
}

// Names take the allocator and the loader, which may be what was interrupted.
void guard_against_myself() {
  for (const int number : {SIGALRM, SIGSEGV, SIGBUS, SIGABRT}) {
    struct sigaction action {};
    action.sa_handler = tell_addresses;
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigaction(number, &action, nullptr);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_UNBLOCK, &only, nullptr);
  }
  alarm(kNamesSecondsMax);
}

bool waits_for_lock(const std::vector<std::string>& names) {
  constexpr size_t kInnermost = 4;
  for (size_t i = 0; i < names.size() && i < kInnermost; ++i)
    if (names[i].find("lock_wait") != std::string::npos ||
        names[i].find("mutex_lock") != std::string::npos ||
        names[i].find("rwlock") != std::string::npos)
      return true;
  return false;
}

// The way from an event of the simulator to the user's function says nothing.
bool is_machinery(const std::string& name) {
  constexpr std::array<std::string_view, 6> kBeginnings = {
      "rehearsal::UniqueFunction<",
      "std::variant<rehearsal::HeldValue, rehearsal::PendingValue> rehearsal::detail::invoke<",
      "std::_Function_handler<std::variant<rehearsal::HeldValue",
      "std::_Function_handler<void (std::shared_ptr<rehearsal::ServedCall>",
      "void boost::context::",
      "make_fcontext"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&name](std::string_view beginning) { return name.starts_with(beginning); });
}

void tell_stack(std::span<void*> stack, bool hangs) {
  const RealClockAllowed allowed;
  std::vector<std::string> names = described(stack);
  std::erase_if(names, is_machinery);
  for (size_t i = 0, next = 0; i < names.size(); i = next) {
    while (next < names.size() && names[next] == names[i]) ++next;
    const std::string times = next - i > 1 ? ", " + std::to_string(next - i) + " times" : "";
    write_text(STDERR_FILENO, "  " + names[i] + times + "\n");
  }
  if (!hangs) return;
  write_text(
      STDERR_FILENO,
      waits_for_lock(names)
          ? "  It waits for a lock that another function holds while it waits itself: a std::mutex "
            "must not be held across a call, since all functions of a simulated run share "
            "one thread. A boost::fibers::mutex may be.\n"
          : "  If it only computes for so long: --watchdog 60s, or ClusterOptions::watchdog.\n");
}

[[noreturn]] void die(const Death& death, std::string_view line, void* context,
                      const LastWords* words) {
  told = &death;
  told_with = words;
  write_text(STDERR_FILENO, line);
  auto& interrupted = *static_cast<ucontext_t*>(context);
  if (death.signal == 0) leave_stub(interrupted);  // After a fault the stack may be unreadable.
  const std::span<void*> stack = interrupted_frames(interrupted);
  guard_against_myself();
  tell_stack(stack, death.signal == 0);
  end_process();
}

}  // namespace

const LastWords* last_words() { return words_of_process; }
void set_last_words(const LastWords* words) { words_of_process = words; }

const RunPulse* shown_run() { return run_of_thread; }
void show_run(const RunPulse* run) { run_of_thread = run; }

void use_signal_stack() {
  stack_t present{};
  if (sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) return;
  stack_t own{};
  own.ss_size = kSignalStackBytes;
  own.ss_sp = std::malloc(own.ss_size);  // For as long as the thread.
  if (own.ss_sp != nullptr) sigaltstack(&own, nullptr);
  // The first call of it takes memory, which a handler could not.
  std::array<void*, 1> unused{};
  static_cast<void>(backtrace(unused.data(), 1));
}

void die_of_signal(int signal, const void* fault_address, void* context) {
  static Death death;
  death.oracle = "process";
  death.signal = signal;
  const char* const name = sigdescr_np(signal);
  death.object << "signal " << signal << " (" << (name == nullptr ? "unknown" : name) << ")";
  death.message << "in " << running_code().text() << worker_place().text();
  const uint64_t distance = reinterpret_cast<uint64_t>(fault_address) -
                            stack_pointer(*static_cast<const ucontext_t*>(context)) + kNearBytes;
  if (signal == SIGSEGV && distance < 2 * kNearBytes)
    death.message << ", which may have used up its stack";
  Line line;
  line << kSignalLine << death.object.text() << " " << death.message.text() << "\n";
  die(death, line.text(), context, std::exchange(words_of_process, nullptr));
}

void die_of_hang(void* context, const LastWords& words) {
  static Death death;
  death.oracle = "watchdog";
  death.object << running_code().text();
  constexpr std::string_view kWhy = ": no event for longer than the watchdog allows";
  death.message << "the run hangs" << worker_place().text() << kWhy;
  Line line;
  line << kHangLine << running_code().text() << worker_place().text() << kWhy << "\n";
  const LastWords* const of_process = std::exchange(words_of_process, nullptr);
  die(death, line.text(), context, of_process != nullptr ? of_process : &words);
}

}  // namespace rehearsal::sim
