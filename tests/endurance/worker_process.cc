#include "tests/endurance/worker_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

#include "core/base/check.h"
#include "real_net/run_worker.h"
#include "scenarios/storm/storm.h"
#include "tests/whole_file.h"

namespace rehearsal::endurance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kJoined[] = "joined\n";
constexpr char kOrder[] = "REHEARSAL_STORM_WORKER";

std::string to_text(const WorkerOrder& order) {
  std::ostringstream text;
  text << order.rank << ' ' << order.listen << ' ' << order.advertise << ' ' << order.seed << ' '
       << order.operations << ' ' << order.store;
  return text.str();
}

WorkerOrder order_from(const std::string& text) {
  std::istringstream words(text);
  WorkerOrder order;
  words >> order.rank >> order.listen >> order.advertise >> order.seed >> order.operations >>
      order.store;
  return order;
}

// Says when the worker has joined: nothing runs before.
class SaysJoined final : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind != EventKind::execution_started || std::exchange(said_, true)) return;
    std::printf("%s", kJoined);
    std::fflush(stdout);
  }

 private:
  bool said_ = false;
};

real::WorkerOptions options_of(const WorkerOrder& order) {
  real::WorkerOptions made;
  made.placement = {.rank = order.rank, .world_size = {}, .rendezvous = "file://" + order.store};
  made.environment = [](const std::string&) { return std::nullopt; };
  made.listen = real::Address{.host = "127.0.0.1", .port = order.listen};
  made.advertise = real::Address{.host = "127.0.0.1", .port = order.advertise};
  made.num_worker_threads = static_cast<uint32_t>((order.seed + order.rank) % 3);
  made.checkpoints = order.store + ".checkpoints";
  made.observe.log = "off";
  made.node.seed = Seed{order.seed};
  made.node.heartbeat = milliseconds(500);
  made.node.peer_timeout = seconds(5);
  made.node.join_timeout = seconds(20);
  made.node.shutdown_timeout = seconds(20);
  made.node.rpc_timeout = seconds(30);
  return made;
}

}  // namespace

WorkerProcess::WorkerProcess(const WorkerOrder& order) {
  static std::atomic<uint64_t> count{0};
  path_ = order.store + ".output" + std::to_string(count++);
  std::string said = kOrder;
  said += '=';
  said += to_text(order);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable)
    environment.push_back(*variable);
  environment.push_back(said.data());
  environment.push_back(nullptr);
  char path[] = "/proc/self/exe";
  char* arguments[] = {path, nullptr};
  const pid_t maker = getpid();
  // Between fork and exec only what a process with threads may do.
  process_ = fork();
  REHEARSAL_CHECK(process_ >= 0);
  if (process_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != maker) _exit(1);
  const int output = open(path_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execve(path, arguments, environment.data());
  _exit(127);
}

WorkerProcess::~WorkerProcess() {
  kill();
  std::filesystem::remove(path_);
}

void WorkerProcess::kill() {
  if (ended()) return;
  ::kill(process_, SIGKILL);
  int status = 0;
  waitpid(process_, &status, 0);
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

bool WorkerProcess::ended() {
  if (status_) return true;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) return false;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return true;
}

std::string WorkerProcess::output() const { return read_whole_file(path_); }

bool WorkerProcess::joined() const { return output().starts_with(kJoined); }

std::string WorkerProcess::last_words() const {
  const std::string all = output();
  return all.substr(all.starts_with(kJoined) ? sizeof kJoined - 1 : 0);
}

std::optional<int> run_as_worker() {
  const char* said = std::getenv(kOrder);
  if (said == nullptr) return std::nullopt;
  const WorkerOrder order = order_from(said);
  const Scenario storm = storm_scenario();
  const std::string operations = "operations=" + std::to_string(order.operations);
  const Options options = storm.options.parse({operations, "workers=4"}, "full");
  Reporter reporter;
  reporter.line = reporter.progress = [](const std::string&) {};
  const Program program = storm.program({options, Seed{order.seed}, reporter});
  SaysJoined trace;
  real::WorkerOptions worker = options_of(order);
  worker.trace = &trace;
  const Status status = real::run_worker(worker, program);
  if (!status.ok()) std::printf("%s\n", to_string(status.error()).c_str());
  std::fflush(stdout);
  return status.ok() ? 0 : 1;
}

}  // namespace rehearsal::endurance
