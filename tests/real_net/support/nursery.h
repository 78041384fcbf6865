#pragma once

#include <sys/types.h>

#include <functional>

namespace rehearsal::real {

// A process that starts others and waits for them. Made before there are threads, it can fork when
// its maker no longer can. Its children end with it, by SIGKILL.
class Nursery {
 public:
  // `body(number)` is what a child does; its value is the child's exit status.
  explicit Nursery(const std::function<int(int number)>& body);
  ~Nursery();
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;

  [[nodiscard]] pid_t start(int number);
  // Waits until it has ended: its exit status, or minus the signal that ended it.
  int wait(pid_t child);
  // The same after SIGKILL.
  int kill(pid_t child);

 private:
  int ask(int what, int argument);
  pid_t process_ = -1;
  int control_ = -1;
};

}  // namespace rehearsal::real
