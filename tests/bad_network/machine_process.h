#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace rehearsal::bad_network {

// This binary once more, as the tool, on one of the machines of a BadNetwork. It ends with its
// maker.
class MachineProcess {
 public:
  // `variables` are "NAME=value"; the output goes to the file `output`.
  MachineProcess(int name_space, const std::vector<std::string>& words,
                 const std::vector<std::string>& variables, std::string output);
  ~MachineProcess();  // kills it if it still runs
  MachineProcess(const MachineProcess&) = delete;
  MachineProcess& operator=(const MachineProcess&) = delete;

  void signal(int number) const;
  void kill();
  // Whether it has ended, by itself or not.
  [[nodiscard]] bool ended();
  // After it has: its exit status, or minus the signal.
  [[nodiscard]] int status() const { return *status_; }
  [[nodiscard]] std::string output() const;

 private:
  void note(int status);

  const std::string output_;
  pid_t process_ = -1;
  std::optional<int> status_;
};

}  // namespace rehearsal::bad_network
