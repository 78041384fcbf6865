#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace rehearsal::endurance {

// The order to one worker of a storm, as a process of its own.
struct WorkerOrder {
  uint32_t rank = 0;
  uint16_t listen = 0;
  uint16_t advertise = 0;  // a proxy's
  std::string store;       // the file of the rendezvous
  uint64_t seed = 0;
  int64_t operations = 0;
};

// A worker of the storm with four workers, in a process of its own: this binary once more. It ends
// with its maker.
class WorkerProcess {
 public:
  explicit WorkerProcess(const WorkerOrder& order);
  ~WorkerProcess();  // kills it if it still runs
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Whether it has joined its group.
  [[nodiscard]] bool joined() const;
  void kill();
  // Whether it has ended, by itself or not.
  [[nodiscard]] bool ended();
  // After it has: its exit status, or minus the signal.
  [[nodiscard]] int status() const { return *status_; }
  // After it has: what it said last.
  [[nodiscard]] std::string last_words() const;

 private:
  [[nodiscard]] std::string output() const;

  std::string path_;  // of the output
  pid_t process_ = -1;
  std::optional<int> status_;
};

// If this process is such a worker, its exit status.
[[nodiscard]] std::optional<int> run_as_worker();

}  // namespace rehearsal::endurance
