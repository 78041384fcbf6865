#include "tests/bad_network/machine_process.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/check.h"
#include "tests/scenarios/tool_run.h"
#include "tests/whole_file.h"

namespace rehearsal::bad_network {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

MachineProcess::MachineProcess(int name_space, const std::vector<std::string>& words,
                               const std::vector<std::string>& variables, std::string output)
    : output_(std::move(output)) {
  std::vector<std::string> arguments = {"rehearsal"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<std::string> all = variables;
  all.push_back(std::string(command_line::kToolVariable) + "=1");
  for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
  const std::vector<char*> argument_list = pointers(arguments), environment = pointers(all);
  const pid_t maker = getpid();
  // Between fork and exec only what a process with threads may do.
  process_ = fork();
  REHEARSAL_CHECK(process_ >= 0);
  if (process_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != maker || setns(name_space, CLONE_NEWNET) != 0) _exit(126);
  const int file = open(output_.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  execve("/proc/self/exe", argument_list.data(), environment.data());
  _exit(127);
}

MachineProcess::~MachineProcess() { kill(); }

void MachineProcess::signal(int number) const {
  if (!status_) ::kill(process_, number);
}

void MachineProcess::note(int status) {
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void MachineProcess::kill() {
  if (ended()) return;
  ::kill(process_, SIGKILL);
  int status = 0;
  waitpid(process_, &status, 0);
  note(status);
}

bool MachineProcess::ended() {
  if (status_) return true;
  int status = 0;
  if (waitpid(process_, &status, WNOHANG) != process_) return false;
  note(status);
  return true;
}

std::string MachineProcess::output() const { return read_whole_file(output_); }

}  // namespace rehearsal::bad_network
