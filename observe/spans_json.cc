// Spans to and from the JSON format of Perfetto.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_bounds.h"
#include "observe/spans.h"

namespace rehearsal::observe {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "rehearsal spans 1";

std::string hex(uint64_t value) {
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

// 16 digits each: incarnation, path, ordinal.
std::string text_of(const CausalId& id) {
  return hex(id.incarnation.value) + hex(id.path.high) + hex(id.path.low) + hex(id.ordinal);
}

CausalId id_of(const std::string& text) {
  if (text.size() != 64) throw std::invalid_argument("a call's id");
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < words.size(); ++i) {
    const char* from = text.data() + 16 * i;
    const auto [end, error] = std::from_chars(from, from + 16, words[i], 16);
    if (error != std::errc() || end != from + 16) throw std::invalid_argument("a call's id");
  }
  return {{words[0]}, {words[1], words[2]}, words[3]};
}

double microseconds(Duration time) { return static_cast<double>(time.count()) / 1000; }

// Process 0 is none.
uint64_t process_of(uint32_t worker) { return uint64_t{worker} + 1; }

class Writing {
 public:
  explicit Writing(const SpanFile& file) : file_(file) {
    for (const Span& span : file.spans) spans_.push_back(&span);
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const Span* one, const Span* other) { return one->begin < other->begin; });
    for (const Span* span : spans_)
      if (span->served) served_.emplace(span->call, span);
  }

  Json write() {
    for (uint32_t rank = 0; rank < file_.names.size(); ++rank)
      name("process_name", rank, 0, file_.names[rank]);
    for (const Span* span : spans_) {
      if (span->served)
        slice(*span);
      else
        line(*span);
    }
    return std::move(events_);
  }

 private:
  void name(const char* what, uint32_t rank, size_t thread, const std::string& text) {
    events_.push_back({{"ph", "M"},
                       {"name", what},
                       {"pid", process_of(rank)},
                       {"tid", thread},
                       {"args", {{"name", text}}}});
  }

  Json event(const char* phase, const Span& span, Instant when) const {
    return {{"ph", phase},
            {"name", span_name(span, file_.names)},
            {"cat", span.served ? "served" : "made"},
            {"ts", microseconds(when.time_since_epoch())},
            {"pid", process_of(span.worker)}};
  }

  // Everything that reads a span back.
  static Json arguments_of(const Span& span) {
    Json arguments{{"call", text_of(span.call)},
                   {"function", span.function},
                   {"peer", span.peer},
                   {"begin_ns", span.begin.time_since_epoch().count()},
                   {"end_ns", span.end.time_since_epoch().count()}};
    if (!span.served) arguments["form"] = static_cast<int>(span.form);
    if (span.error) {
      arguments["error"] = name_of(*span.error);
      arguments["error_kind"] = static_cast<int>(*span.error);
    }
    return arguments;
  }

  // On a line that has the call's id, which the callee's part shares.
  Json on_line(const char* phase, const Span& span, Instant when) const {
    Json json = event(phase, span, when);
    json["cat"] = "call";
    json["tid"] = 0;
    json["id2"] = {{"global", text_of(span.call)}};
    return json;
  }

  void line(const Span& span) {
    const bool creates = span.form == CallForm::remote;
    Json begin = on_line(creates ? "n" : "b", span, span.begin);
    begin["args"] = arguments_of(span);
    events_.push_back(std::move(begin));
    if (creates) return;
    const auto part = served_.find(span.call);
    const bool nested =
        part != served_.end() && part->second->begin >= span.begin && part->second->end <= span.end;
    if (nested)
      for (const char* phase : {"b", "e"}) {
        const Span& served = *part->second;
        Json json = on_line(phase, served, *phase == 'b' ? served.begin : served.end);
        json["pid"] = process_of(span.worker);
        events_.push_back(std::move(json));
      }
    events_.push_back(on_line("e", span, span.end));
  }

  // On the first thread of its worker that is free by then.
  void slice(const Span& span) {
    std::vector<Instant>& threads = busy_until_[span.worker];
    size_t thread = 0;
    while (thread < threads.size() && threads[thread] > span.begin) ++thread;
    if (thread == threads.size()) {
      threads.emplace_back();
      name("thread_name", span.worker, thread + 1, "serves " + std::to_string(thread + 1));
    }
    threads[thread] = span.end;
    Json json = event("X", span, span.begin);
    json["dur"] = microseconds(span.end - span.begin);
    json["tid"] = thread + 1;
    json["args"] = arguments_of(span);
    events_.push_back(std::move(json));
  }

  const SpanFile& file_;
  Json events_ = Json::array();
  std::vector<const Span*> spans_;
  std::map<CausalId, const Span*> served_;
  std::map<uint32_t, std::vector<Instant>> busy_until_;  // by worker, then thread
};

// No fraction, and nothing that is none of its type.
template <class T>
T whole(const Json& json) {
  if (!json.is_number_integer() || json != Json(json.get<T>()))
    throw std::invalid_argument("a whole number");
  return json.get<T>();
}

// A time that a clock can say: further off, differences of two would not be exact.
Instant instant_of(const Json& json) {
  const Instant when{Duration(whole<int64_t>(json))};
  if (!is_possible(when)) throw std::invalid_argument("a time");
  return when;
}

ErrorKind error_of(int kind) {
  if (kind < 0 || kind > static_cast<int>(kLastErrorKind))
    throw std::invalid_argument("an error's kind");
  return static_cast<ErrorKind>(kind);
}

Span span_of(const Json& json, const SpanFile& file) {
  const Json& arguments = json.at("args");
  Span span;
  span.call = id_of(arguments.at("call").get<std::string>());
  span.served = !arguments.contains("form");
  if (!span.served) {
    const int form = whole<int>(arguments.at("form"));
    if (form < 0 || form > static_cast<int>(CallForm::rpc_async))
      throw std::invalid_argument("the form of a call");
    span.form = static_cast<CallForm>(form);
  }
  const auto process = whole<uint64_t>(json.at("pid"));
  if (process == 0 || process > file.names.size()) throw std::invalid_argument("a process");
  span.worker = static_cast<uint32_t>(process - 1);
  span.peer = whole<uint32_t>(arguments.at("peer"));
  span.function = arguments.at("function").get<std::string>();
  span.begin = instant_of(arguments.at("begin_ns"));
  span.end = instant_of(arguments.at("end_ns"));
  if (arguments.contains("error_kind"))
    span.error = error_of(whole<int>(arguments.at("error_kind")));
  return span;
}

SpanFile parse_file(const Json& json) {
  const Json& about = json.at("otherData");
  if (about.at("format").get<std::string>() != kFormat)
    throw std::invalid_argument("another format");
  SpanFile file;
  file.names = about.at("workers").get<std::vector<std::string>>();
  file.forgotten = whole<uint64_t>(about.at("forgotten"));
  for (const Json& event : json.at("traceEvents"))
    if (event.contains("args") && event["args"].is_object() && event["args"].contains("call"))
      file.spans.push_back(span_of(event, file));
  return file;
}

}  // namespace

std::string perfetto_text(const SpanFile& file) {
  const Json json{
      {"traceEvents", Writing(file).write()},
      {"displayTimeUnit", "ns"},
      {"otherData", {{"format", kFormat}, {"workers", file.names}, {"forgotten", file.forgotten}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<SpanFile> read_spans(const std::string& text) {
  try {
    return parse_file(parse_bounded<Json>(text));
  } catch (const std::exception& wrong) {
    return Error{.kind = ErrorKind::bad_arguments,
                 .text = std::string("this is no file of spans: ") + wrong.what()};
  }
}

}  // namespace rehearsal::observe
