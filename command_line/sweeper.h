// Folders that nobody is left to remove.
#pragma once

#include <string>

namespace rehearsal::command_line {

// While it lives a process of its own waits for the end of this one, whatever ends it: Ctrl-C, a
// signal, a crash. Then that process removes a folder. Copies of this process, which work in the
// folder, are waited for, too. Where no process can be started the folder stays.
class Sweeper {
 public:
  explicit Sweeper(const std::string& folder);
  // The folder is removed by its owner: that process ends, and leaves it alone.
  ~Sweeper();
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

 private:
  int told_ = -1;  // the other process reads what comes here; -1: there is none
};

}  // namespace rehearsal::command_line
