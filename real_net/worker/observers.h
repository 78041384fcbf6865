#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/log/log.h"
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
  [[nodiscard]] Trace* log_trace() { return logs_ ? &log_trace_ : nullptr; }
  [[nodiscard]] Trace* trace() { return traces_.empty() ? nullptr : &traces_; }
  [[nodiscard]] const std::optional<Address>& metrics() const { return metrics_; }
  [[nodiscard]] observe::Log& log() { return log_; }

  // Writes the spans, if there are to be any: when the node is gone.
  [[nodiscard]] Status write_spans() const;

 private:
  Observers(observe::LogLevel level, const std::vector<std::string>& names, WorkerId self);

  const std::vector<std::string> names_;
  observe::Log log_;
  observe::LogTrace log_trace_;
  bool logs_ = false;
  std::optional<observe::Spans> spans_;
  std::string spans_folder_, spans_file_;
  std::optional<Address> metrics_;
  observe::Traces traces_;
};

}  // namespace rehearsal::real
