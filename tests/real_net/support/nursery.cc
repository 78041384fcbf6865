#include "tests/real_net/support/nursery.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

enum Request : int { start_child, wait_for_child, kill_child };
using Question = std::array<int, 2>;

int end_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

int answer(const Question& question, const std::function<int(int)>& body, int control) {
  if (question[0] == wait_for_child) return end_of(question[1]);
  if (question[0] == kill_child) {
    ::kill(question[1], SIGKILL);
    return end_of(question[1]);
  }
  const pid_t child = fork();
  if (child != 0) return child;
  close(control);
  die_with_parent();
  _exit(body(question[1]));
}

}  // namespace

Nursery::Nursery(const std::function<int(int number)>& body) {
  int ends[2];
  REHEARSAL_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  process_ = fork();
  control_ = ends[process_ == 0 ? 1 : 0];
  close(ends[process_ == 0 ? 0 : 1]);
  if (process_ != 0) return;
  die_with_parent();
  Question question;
  while (read(control_, question.data(), sizeof question) == sizeof question) {
    const int answered = answer(question, body, control_);
    if (write(control_, &answered, sizeof answered) != sizeof answered) break;
  }
  _exit(0);
}

Nursery::~Nursery() {
  close(control_);
  waitpid(process_, nullptr, 0);
}

int Nursery::ask(int what, int argument) {
  const Question question{what, argument};
  int answered = 0;
  REHEARSAL_CHECK(write(control_, question.data(), sizeof question) == sizeof question);
  REHEARSAL_CHECK(read(control_, &answered, sizeof answered) == sizeof answered);
  return answered;
}

pid_t Nursery::start(int number) { return ask(start_child, number); }
int Nursery::wait(pid_t child) { return ask(wait_for_child, child); }
int Nursery::kill(pid_t child) { return ask(kill_child, child); }

}  // namespace rehearsal::real
