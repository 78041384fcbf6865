#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/time.h"
#include "core/base/trace.h"

namespace rehearsal::observe {

// How grave a line is; a log writes what is as grave as its own level, or graver.
enum class LogLevel : uint8_t { debug, info, warn, error, off };

// "debug", "info", "warn", "error" or "off"; nothing for any other text.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view text);

// The contents of a line, in order: name and value.
using LogFields = std::vector<std::pair<std::string_view, std::string>>;

// Whole seconds, as a field has them: "5".
[[nodiscard]] std::string seconds_text(Duration time);

// The log of one worker, a line for each thing that happened, for people and for programs:
//
//   2026-03-01T12:00:00.000123Z level=warning worker=ps event=link_lost peer=trainer why="reset"
//
// Times are UTC. A value that is not one plain word is in quotes, with \" and \\ in it, and with
// what printable of core/base/printable.h writes out. Any thread.
class Log {
 public:
  // On standard error; or on `out`, which outlives the log.
  Log(LogLevel level, std::string worker);
  Log(LogLevel level, std::string worker, std::ostream& out);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  [[nodiscard]] bool writes(LogLevel level) const;
  void write(LogLevel level, std::string_view event, const LogFields& fields);

 private:
  struct Logger;
  const std::unique_ptr<Logger> logger_;
};

// Writes what a node does: links, lost workers, checkpoints, notes, its end; at level debug also
// resent and dropped frames, marks, and the calls that fail. `names`: of all workers, in rank
// order. The log outlives it. On the strand, as every Trace.
class LogTrace final : public Trace {
 public:
  LogTrace(Log& log, std::vector<std::string> names) : log_(log), names_(std::move(names)) {}

  void on_event(const Event& event) override;
  [[nodiscard]] bool hears_notes() const override { return log_.writes(LogLevel::info); }

 private:
  [[nodiscard]] std::string name(WorkerId worker) const;

  Log& log_;
  const std::vector<std::string> names_;
};

}  // namespace rehearsal::observe
