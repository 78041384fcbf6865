#include "observe/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

#include "core/base/printable.h"

namespace rehearsal::observe {
namespace {

constexpr std::array<std::pair<std::string_view, LogLevel>, 5> kLevels = {
    {{"debug", LogLevel::debug},
     {"info", LogLevel::info},
     {"warn", LogLevel::warn},
     {"error", LogLevel::error},
     {"off", LogLevel::off}}};

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

bool is_plain(std::string_view value) {
  return !value.empty() && std::ranges::all_of(value, [](unsigned char letter) {
    return letter > ' ' && letter < 127 && letter != '"' && letter != '=' && letter != '\\';
  });
}

void append_field(std::string& line, std::string_view name, std::string_view value) {
  line += ' ';
  line += name;
  line += '=';
  if (is_plain(value)) {
    line += value;
    return;
  }
  append_printable(line += '"', value, "\"\\");
  line += '"';
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view text) {
  for (const auto& [name, level] : kLevels)
    if (name == text) return level;
  return std::nullopt;
}

std::string seconds_text(Duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

// Not registered with spdlog: several workers of a process have a log each.
struct Log::Logger {
  Logger(LogLevel level, std::string name, spdlog::sink_ptr sink)
      : logger("rehearsal", std::move(sink)), worker(std::move(name)) {
    logger.set_level(level_of(level));
    logger.flush_on(spdlog::level::debug);
    logger.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%fZ level=%l%v", spdlog::pattern_time_type::utc));
  }

  spdlog::logger logger;
  const std::string worker;
};

Log::Log(LogLevel level, std::string worker)
    : logger_(std::make_unique<Logger>(level, std::move(worker),
                                       std::make_shared<spdlog::sinks::stderr_sink_mt>())) {}

Log::Log(LogLevel level, std::string worker, std::ostream& out)
    : logger_(std::make_unique<Logger>(level, std::move(worker),
                                       std::make_shared<spdlog::sinks::ostream_sink_mt>(out))) {}

Log::~Log() = default;

bool Log::writes(LogLevel level) const {
  return level != LogLevel::off && logger_->logger.should_log(level_of(level));
}

void Log::write(LogLevel level, std::string_view event, const LogFields& fields) {
  if (!writes(level)) return;
  std::string line;
  append_field(line, "worker", logger_->worker);
  append_field(line, "event", event);
  for (const auto& [name, value] : fields) append_field(line, name, value);
  logger_->logger.log(level_of(level), spdlog::string_view_t(line.data(), line.size()));
}

// ---- events -----------------------------------------------------------------

std::string LogTrace::name(WorkerId worker) const {
  return worker.value < names_.size() ? names_[worker.value] : std::to_string(worker.value);
}

void LogTrace::on_event(const Event& event) {
  using enum LogLevel;
  const auto write = [&](LogLevel level, std::string_view what, std::string_view text) {
    if (!log_.writes(level)) return;
    LogFields fields;
    if (event.peer != kNoPeer) fields.emplace_back("peer", name(event.peer));
    if (!text.empty()) fields.emplace_back(text, std::string(event.text));
    log_.write(level, what, fields);
  };
  switch (event.kind) {
    case EventKind::peer_up:
      return write(info, "link_up", "");
    case EventKind::peer_lost:
      return write(info, "link_lost", "why");
    case EventKind::peer_fenced:
      return write(warn, "peer_lost", "why");
    case EventKind::checkpoint_saved:
      return write(info, "checkpoint_saved", "name");
    case EventKind::checkpoint_loaded:
      return write(info, "checkpoint_loaded", "name");
    case EventKind::reference_leaked:
      return write(warn, "reference_leaked", "which");
    case EventKind::destructor_failed:
      return log_.write(error, "destructor_failed",
                        {{"type", std::string(event.text)}, {"why", std::string(event.value)}});
    case EventKind::node_stopped:
      return write(info, "stopped", "why");
    case EventKind::note:
      if (log_.writes(info))
        log_.write(info, "note",
                   {{"name", std::string(event.text)}, {"value", std::string(event.value)}});
      return;
    case EventKind::frame_resent:
      return write(debug, "frame_resent", "");
    case EventKind::frame_dropped:
      return write(debug, "frame_dropped", "why");
    case EventKind::mark:
      return write(debug, "mark", "name");
    case EventKind::call_completed:
      if (event.number > 0) write(debug, "call_failed", "");
      return;
    default:
      return;
  }
}

}  // namespace rehearsal::observe
