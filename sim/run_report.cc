#include "sim/run_report.h"

#include "core/base/printable.h"

namespace rehearsal::sim {

std::string describe_failure(const RunReport& report) {
  std::string text;
  if (report.failure) {
    text = "oracle '" + report.failure->oracle + "' failed on " +
           printable(report.failure->object) + ": " + printable_lines(report.failure->message) +
           "\n";
  }
  text += "after " + std::to_string(report.virtual_seconds()) + " virtual seconds and " +
          std::to_string(report.decisions) + " events; faults: " + report.faults + "\n";
  for (const WorkerReport& worker : report.workers) {
    text += "  " + worker.name + ": ";
    if (worker.lives > 1) text += "life " + std::to_string(worker.lives) + ", ";
    if (worker.crashed) {
      text += "crashed\n";
    } else {
      text += (worker.error ? to_string(*worker.error) : "no error") + "\n";
    }
  }
  for (const std::string& leak : report.leaks) text += "  leak: " + printable(leak) + "\n";
  return text + "reproduce it with:\n" + report.reproduction;
}

}  // namespace rehearsal::sim
