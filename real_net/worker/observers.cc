#include "real_net/worker/observers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/base/printable.h"
#include "record/whole_file.h"

namespace rehearsal::real {

std::optional<Address> parse_metrics_address(std::string_view text) {
  if (text.find(':') != std::string_view::npos) return parse_address(text);
  return parse_address("127.0.0.1:" + std::string(text));
}

Observers::Observers(observe::LogLevel level, Duration slow_after,
                     const std::vector<std::string>& names, WorkerId self)
    : names_(names),
      self_(names.at(self.value)),
      log_(level, names.at(self.value)),
      log_trace_(log_, names),
      slow_(log_, names.at(self.value), slow_after),
      slow_passes_(log_, names, slow_after),
      long_waits_(log_, slow_after),
      failing_(log_, names) {}

Result<std::unique_ptr<Observers>> Observers::make(const ObserverOptions& options,
                                                   const Environment& environment,
                                                   const std::vector<std::string>& names,
                                                   WorkerId self, Trace* next) {
  const auto given = [&environment](const std::string& value, const char* variable) {
    return value.empty() ? environment(variable).value_or("") : value;
  };
  const std::string level_text = given(options.log, "REHEARSAL_LOG");
  const auto level = observe::parse_log_level(level_text.empty() ? "warn" : level_text);
  if (!level)
    return wrong_arguments("log level '" + level_text + "': type debug, info, warn, error or off");
  std::unique_ptr<Observers> made(new Observers(*level, options.slow_after, names, self));
  made->traces_.add(next);
  made->logs_ = *level != observe::LogLevel::off;
  made->spans_folder_ = given(options.spans, "REHEARSAL_SPANS");
  if (!made->spans_folder_.empty()) {
    std::string name = names[self.value];
    std::replace(name.begin(), name.end(), '/', '_');
    made->spans_file_ =
        (std::filesystem::path(made->spans_folder_) / (name + ".spans.json")).string();
    made->traces_.add(&made->spans_.emplace());
  }
  const std::string metrics = given(options.metrics, "REHEARSAL_METRICS");
  if (metrics.empty()) return made;
  made->metrics_ = parse_metrics_address(metrics);
  if (!made->metrics_)
    return wrong_arguments("metrics at '" + metrics +
                           "': type PORT or HOST:PORT, for example 9464");
  return made;
}

void Observers::tell(const std::string& event, const std::string& line) {
  if (!logs_) return;
  if (isatty(STDERR_FILENO) == 0)
    return log_.write(observe::LogLevel::warn, event, {{"what", line}});
  std::fprintf(stderr, "rehearsal: worker '%s' %s\n", printable(self_).c_str(),
               printable(line).c_str());
}

Status Observers::write_spans() const {
  if (!spans_) return Unit{};
  std::error_code error;
  std::filesystem::create_directories(spans_folder_, error);
  Status written = record::write_whole_file(
      spans_file_, observe::perfetto_text(observe::file_of(*spans_, names_)));
  if (written.ok()) return written;
  return Error{.kind = ErrorKind::storage,
               .text = "the spans: " + written.error().text +
                       "; look whether the folder can be written to and has room"};
}

}  // namespace rehearsal::real
