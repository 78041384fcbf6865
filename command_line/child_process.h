// A process of this same binary that takes requests and reports, one line of JSON each.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/commands.h"

namespace rehearsal::command_line {

// Where a child finds its two pipes, requests to it and reports from it, and what it was given
// beside them.
inline constexpr int kRequestDescriptor = 3;
inline constexpr int kReportDescriptor = 4;
inline constexpr int kGivenDescriptor = 5;

// How the last line on the standard error of a process begins that could not be started; its cause
// follows. Its exit status is 127.
inline constexpr std::string_view kNotStartedLine = "a process of this tool cannot be started: ";

struct ChildSetup {
  std::vector<std::string> arguments;  // behind the program's name
  // With one, the child is a copy of this process where it can be (process_copy.h), in which `main`
  // gets these arguments. Without, the binary is started anew.
  const Tool* tool = nullptr;
  std::map<std::string, std::string> environment = {};  // replaces or adds to ours
  std::string directory = {};                           // to start in; empty: ours
  std::optional<int> core = {};                         // the only one it runs on; without: as we
  // Its libraries and stacks lie elsewhere than ours, even where the system puts everything at the
  // same addresses each time. Only without a tool.
  bool moved_memory = false;
  // Of ours; the child has it, too, as kGivenDescriptor.
  std::optional<int> gives = {};
  // The child's standard error is kept for `take_errors`, and not part of ours.
  bool keeps_errors = false;
};

// Owns the process: the destructor kills it if it still runs, and waits for it. A child also dies
// when its parent does. Its standard output goes to its standard error, and that to ours, unless it
// is kept.
class ChildProcess {
 public:
  // Throws std::system_error if the process cannot be made. One that is made and cannot begin, for
  // want of a descriptor, its folder or memory, ends with kNotStartedLine.
  explicit ChildProcess(const ChildSetup& setup);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Sends one request. A child that is gone does not get it; its reports end.
  void send(const Json& request);

  // No request will come any more.
  void close_requests();

  // To poll: readable when a report is there or the reports have ended.
  [[nodiscard]] int report_descriptor() const { return reports_; }

  // Reads what is there without waiting for more and returns the complete lines.
  [[nodiscard]] std::vector<Json> take_reports();

  // True when the child has closed its reports and all were taken.
  [[nodiscard]] bool reports_ended() const { return ended_; }

  // The child's standard error since the last call, if it is kept.
  [[nodiscard]] std::string take_errors();

  // Processor time that it has taken, in seconds; zero once it has been waited for.
  [[nodiscard]] double processor_seconds() const;

  // Waits for the end of the process. Returns its exit status, or minus the signal that ended it.
  int wait();

  void kill();

 private:
  pid_t process_ = -1;
  int requests_ = -1;
  int reports_ = -1;
  int errors_ = -1;
  off_t errors_taken_ = 0;
  std::string partial_;
  bool ended_ = false;
  std::optional<int> status_;
};

// Waits until one of the children has something to report, a fifth of a second at most.
void wait_for_reports(const std::vector<ChildProcess*>& children);

// How the end of a process is told to people: "exit status 3", "signal 11 (Segmentation fault)".
[[nodiscard]] std::string describe_status(int status);

// The child's side. Reports are dropped if the descriptor is not open.
void write_report(const Json& report);
[[nodiscard]] std::optional<Json> read_request();

}  // namespace rehearsal::command_line
