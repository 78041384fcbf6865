#include "command_line/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "command_line/command_line.h"
#include "command_line/process_copy.h"
#include "core/base/check.h"

namespace rehearsal::command_line {
namespace {

constexpr int kNotStarted = 127;
constexpr const char* kThisBinary = "/proc/self/exe";

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe");
  return {ends[0], ends[1]};
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : changes) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A setting that the system refuses is left as it is. The system puts libraries below the room that
// a stack may need.
void move_memory() {
  const int present = personality(0xffffffff);
  if (present != -1) personality(static_cast<unsigned long>(present) & ~ADDR_NO_RANDOMIZE);
  constexpr rlim_t kStackBytes = 192 * 1024 * 1024 + 4096;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0) return;
  if (stack.rlim_cur >= kStackBytes || stack.rlim_max < kStackBytes) return;
  stack.rlim_cur = kStackBytes;
  setrlimit(RLIMIT_STACK, &stack);
}

void run_on(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

// A file without a name. Each write appends to it, wherever its content ends.
int make_error_file() {
  const int file = memfd_create("errors", MFD_CLOEXEC);
  if (file < 0 || fcntl(file, F_SETFL, O_APPEND) != 0) throw_errno("memfd_create");
  return file;
}

struct ChildDescriptors {
  int requests;
  int reports;
  int errors;  // -1: ours
};

// Right after the fork only some calls are safe; this is one of them.
[[noreturn]] void refuse_to_start(const char* what, int error) {
  const char* cause = strerrordesc_np(error);
  const std::array<std::string_view, 5> parts = {kNotStartedLine, what, ": ",
                                                 cause == nullptr ? "" : cause, "\n"};
  // In one piece, so that no other process writes between them.
  std::array<iovec, parts.size()> pieces{};
  for (size_t i = 0; i < parts.size(); ++i)
    pieces[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  // Where even this cannot be told there is the exit status.
  [[maybe_unused]] const ssize_t told =
      writev(STDERR_FILENO, pieces.data(), static_cast<int>(pieces.size()));
  _exit(kNotStarted);
}

// Out of the way of the descriptors that they become.
int move_high(int descriptor) {
  const int high = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
  // EINVAL: the limit of descriptors is lower.
  if (high < 0) refuse_to_start("its descriptors (ulimit -n)", errno == EINVAL ? EMFILE : errno);
  return high;
}

void become(int descriptor, int wanted) {
  if (dup2(descriptor, wanted) < 0) refuse_to_start("its descriptors (ulimit -n)", errno);
}

// Runs right after the fork: only calls that are safe there.
void become_child(pid_t parent, const ChildDescriptors& given, const ChildSetup& setup) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kNotStarted);  // it died before the line above
  if (setup.core) run_on(*setup.core);
  if (setup.moved_memory) move_memory();
  const char* directory = setup.directory.empty() ? nullptr : setup.directory.c_str();
  if (given.errors >= 0) become(given.errors, STDERR_FILENO);
  const int high_requests = move_high(given.requests);
  const int high_reports = move_high(given.reports);
  const int high_gift = setup.gives ? move_high(*setup.gives) : -1;
  become(high_requests, kRequestDescriptor);
  become(high_reports, kReportDescriptor);
  if (setup.gives) become(high_gift, kGivenDescriptor);
  become(STDERR_FILENO, STDOUT_FILENO);
  if (directory != nullptr && chdir(directory) != 0) refuse_to_start(directory, errno);
}

[[noreturn]] void go_on_as_copy(const ChildSetup& setup, std::vector<char*> arguments) {
  begin_copy(setup.environment);
  const int count = static_cast<int>(arguments.size()) - 1;  // behind them is a null
  end_copy(main(count, arguments.data(), setup.tool->scenarios, setup.tool->backends));
}

void write_all(int descriptor, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = write(descriptor, text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) done += static_cast<size_t>(count);
  }
}

}  // namespace

ChildProcess::ChildProcess(const ChildSetup& setup) {
  signal(SIGPIPE, SIG_IGN);  // a child that died shows as the end of its reports
  std::vector<std::string> arguments = {"rehearsal"};
  arguments.insert(arguments.end(), setup.arguments.begin(), setup.arguments.end());
  std::vector<std::string> environment = merged_environment(setup.environment);
  const std::vector<char*> argument_pointers = pointers(arguments);
  const std::vector<char*> environment_pointers = pointers(environment);
  const Pipe requests = make_pipe();
  const Pipe reports = make_pipe();
  if (setup.keeps_errors) errors_ = make_error_file();
  REHEARSAL_CHECK(setup.tool == nullptr || !setup.moved_memory);
  const bool is_copy = setup.tool != nullptr && can_be_copied();
  if (is_copy) flush_streams();
  const pid_t parent = getpid();
  process_ = fork();
  if (process_ == 0) {
    become_child(parent, {requests.read, reports.write, errors_}, setup);
    if (is_copy) go_on_as_copy(setup, argument_pointers);
    execve(kThisBinary, argument_pointers.data(), environment_pointers.data());
    refuse_to_start("its binary", errno);
  }
  close(requests.read);
  close(reports.write);
  requests_ = requests.write;
  reports_ = reports.read;
  if (process_ < 0) throw_errno("fork");
  fcntl(reports_, F_SETFL, O_NONBLOCK);
}

ChildProcess::~ChildProcess() {
  if (process_ > 0 && !status_) {
    kill();
    wait();
  }
  close_requests();
  if (reports_ >= 0) close(reports_);
  if (errors_ >= 0) close(errors_);
}

void ChildProcess::send(const Json& request) { write_all(requests_, request.dump() + "\n"); }

void ChildProcess::close_requests() {
  if (requests_ >= 0) close(std::exchange(requests_, -1));
}

std::vector<Json> ChildProcess::take_reports() {
  std::array<char, 65536> chunk{};
  while (!ended_) {
    const ssize_t count = read(reports_, chunk.data(), chunk.size());
    if (count > 0) {
      partial_.append(chunk.data(), static_cast<size_t>(count));
    } else if (count == 0) {
      ended_ = true;
    } else if (errno != EINTR) {
      break;
    }
  }
  std::vector<Json> reports;
  size_t start = 0;
  for (size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', start)) {
    reports.push_back(Json::parse(partial_.substr(start, end - start)));
    start = end + 1;
  }
  partial_.erase(0, start);
  return reports;
}

std::string ChildProcess::take_errors() {
  std::string text;
  if (errors_ < 0) return text;
  std::array<char, 4096> chunk{};
  while (true) {
    const ssize_t count = pread(errors_, chunk.data(), chunk.size(), errors_taken_);
    if (count <= 0) break;
    text.append(chunk.data(), static_cast<size_t>(count));
    errors_taken_ += count;
  }
  // Gives the memory back; the child goes on at the end.
  if (!text.empty())
    fallocate(errors_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, errors_taken_);
  return text;
}

double ChildProcess::processor_seconds() const {
  clockid_t clock = 0;
  timespec time{};
  if (status_ || clock_getcpuclockid(process_, &clock) != 0 || clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int ChildProcess::wait() {
  if (status_) return *status_;
  int status = 0;
  while (waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  return *status_;
}

void ChildProcess::kill() {
  if (process_ > 0 && !status_) ::kill(process_, SIGKILL);
}

void wait_for_reports(const std::vector<ChildProcess*>& children) {
  std::vector<pollfd> polled;
  for (const ChildProcess* child : children) {
    if (!child->reports_ended()) polled.push_back({child->report_descriptor(), POLLIN, 0});
  }
  constexpr int kMilliseconds = 200;
  // An interruption only makes the caller look earlier.
  static_cast<void>(poll(polled.data(), polled.size(), kMilliseconds));
}

std::string describe_status(int status) {
  if (status >= 0) return "exit status " + std::to_string(status);
  return "signal " + std::to_string(-status) + " (" + strsignal(-status) + ")";
}

void write_report(const Json& report) {
  write_all(kReportDescriptor, report.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<Json> read_request() {
  std::string line;
  char letter = 0;
  while (true) {
    const ssize_t count = read(kRequestDescriptor, &letter, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    if (letter == '\n') return Json::parse(line);
    line.push_back(letter);
  }
}

}  // namespace rehearsal::command_line
