#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/log/failing_callers.h"
#include "observe/log/log.h"
#include "observe/log/long_waits.h"
#include "observe/log/slow_executions.h"
#include "observe/log/slow_passes.h"
#include "observe/spans.h"
#include "observe/traces.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// How a worker is seen from outside. An option left alone comes from the environment:
// REHEARSAL_METRICS, REHEARSAL_SPANS and REHEARSAL_LOG.
struct ObserverOptions {
  // Where GET /metrics is answered: PORT, on loopback; or HOST:PORT. Port 0: any free one, which a
  // line on standard error tells. Empty: nowhere.
  std::string metrics;
  // Folder for WORKER.spans.json, which ui.perfetto.dev opens. Empty: no spans are made.
  std::string spans;
  // The level of the log on standard error: debug, info, warn, error or off. Empty: warn.
  std::string log;
  // The log tells of a function that has run for so long without waiting for anything, of one that
  // has waited for a mutex for so long, and, at level info, of a backward pass that goes on for so
  // long. Zero: never.
  Duration slow_after = std::chrono::seconds(5);
};

// PORT or HOST:PORT; [HOST]:PORT of an IPv6 address. Nothing if it is neither.
[[nodiscard]] std::optional<Address> parse_metrics_address(std::string_view text);

// The observers of one worker. They outlive its node.
class Observers {
 public:
  // `next`: who else hears the node; may be null. The error (bad_arguments) is one line.
  [[nodiscard]] static Result<std::unique_ptr<Observers>> make(
      const ObserverOptions& options, const Environment& environment,
      const std::vector<std::string>& names, WorkerId self, Trace* next);

  // The parts given to the node; each may be null.
  [[nodiscard]] Trace* log_trace() { return logs_ ? &log_traces_ : nullptr; }
  [[nodiscard]] observe::SlowExecutions* slow() { return logs_ ? &slow_ : nullptr; }
  [[nodiscard]] observe::SlowPasses* slow_passes() { return logs_ ? &slow_passes_ : nullptr; }
  [[nodiscard]] observe::LongWaits* long_waits() { return logs_ ? &long_waits_ : nullptr; }
  [[nodiscard]] Trace* trace() { return traces_.empty() ? nullptr : &traces_; }
  [[nodiscard]] const std::optional<Address>& metrics() const { return metrics_; }
  [[nodiscard]] observe::Log& log() { return log_; }

  // A line for whoever looks at this worker now, "worker 'ps' …": on a terminal as it is, else in
  // the log, as a warning. Nothing if the log is off. Any thread.
  void tell(const std::string& event, const std::string& line);

  // Writes the spans, if there are to be any: when the node is gone.
  [[nodiscard]] Status write_spans() const;

 private:
  Observers(observe::LogLevel level, Duration slow_after, const std::vector<std::string>& names,
            WorkerId self);

  const std::vector<std::string> names_;
  const std::string self_;
  observe::Log log_;
  observe::LogTrace log_trace_;
  observe::SlowExecutions slow_;
  observe::SlowPasses slow_passes_;
  observe::LongWaits long_waits_;
  observe::FailingCallers failing_;
  observe::Traces log_traces_{std::vector<Trace*>{&log_trace_, &slow_, &slow_passes_, &failing_}};
  bool logs_ = false;
  std::optional<observe::Spans> spans_;
  std::string spans_folder_, spans_file_;
  std::optional<Address> metrics_;
  observe::Traces traces_;
};

}  // namespace rehearsal::real
