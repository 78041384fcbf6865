#include "sim/explain/perfetto_trace.h"

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

namespace rehearsal::sim {
namespace {

using Json = nlohmann::ordered_json;

// A strand's own events are on this thread of a worker; executions are on those behind it.
constexpr uint64_t kStrand = 0;
constexpr uint64_t kFirstStream = 1'000'000;  // of devices
// A moment has no length, but an arrow needs a slice to begin and to end at.
constexpr double kMomentMicroseconds = 0.001;

double microseconds(const Entry& entry) {
  return static_cast<double>(entry.when.time_since_epoch().count()) / 1000;
}

class Tracing {
 public:
  explicit Tracing(const Chronicle& chronicle) : chronicle_(chronicle) {}

  Json run() {
    name_processes();
    for (size_t i = 0; i < chronicle_.moments.size(); ++i) take(i);
    end_executions();
    end_calls();
    for (size_t i = 0; i < chronicle_.messages.size(); ++i) draw_arrow(i);
    return std::move(events_);
  }

 private:
  // The cluster is process 1, and worker n process n + 2: 0 is no process.
  static uint64_t process_of(const Entry& entry) {
    const bool of_cluster = entry.worker == kNoWorker || entry.kind == EntryKind::broken;
    return of_cluster ? 1 : uint64_t{entry.worker} + 2;
  }

  void name_processes() {
    const auto name = [this](uint64_t process, const std::string& text) {
      events_.push_back({{"ph", "M"},
                         {"name", "process_name"},
                         {"pid", process},
                         {"tid", kStrand},
                         {"args", {{"name", text}}}});
      events_.push_back({{"ph", "M"},
                         {"name", "process_sort_index"},
                         {"pid", process},
                         {"tid", kStrand},
                         {"args", {{"sort_index", process}}}});
      name_thread(process, kStrand, "strand");
    };
    name(1, "cluster");
    for (size_t i = 0; i < chronicle_.workers.size(); ++i) name(i + 2, chronicle_.workers[i]);
  }

  void name_thread(uint64_t process, uint64_t thread, const std::string& text) {
    events_.push_back({{"ph", "M"},
                       {"name", "thread_name"},
                       {"pid", process},
                       {"tid", thread},
                       {"args", {{"name", text}}}});
  }

  void take(size_t number) {
    const Moment& moment = chronicle_.moments[number];
    const Entry& entry = moment.entry;
    if (entry.kind == EntryKind::crash) end_executions_of(entry);
    if (entry.kind == EntryKind::event) {
      switch (entry.event) {
        case EventKind::execution_started:
          return start_execution(entry);
        case EventKind::execution_ended:
          return end_execution(entry);
        case EventKind::execution_parked:
          return start_wait(entry);
        case EventKind::execution_resumed:
          return end_wait(entry);
        case EventKind::api_call:
          start_call(number);
          break;
        case EventKind::call_completed:
          end_call(entry);
          break;
        case EventKind::note:
          if (entry.number == 1) return draw_number(entry);
          break;
        default:
          break;
      }
    }
    if (moment.message) return draw_moment(number, "message", kStrand);
    if (entry.kind == EntryKind::device) return draw_moment(number, "device", thread_of(entry));
    const bool fault = entry.kind != EntryKind::event && entry.kind != EntryKind::thrown;
    events_.push_back({{"ph", "i"},
                       {"name", std::string(name_of(moment))},
                       {"cat", fault ? "fault" : "event"},
                       {"s", fault && entry.worker == kNoWorker ? "g"
                             : fault                            ? "p"
                                                                : "t"},
                       {"ts", microseconds(entry)},
                       {"pid", process_of(entry)},
                       {"tid", kStrand},
                       {"args", arguments_of(number)}});
  }

  // A point of the curve of this name.
  void draw_number(const Entry& entry) {
    events_.push_back({{"ph", "C"},
                       {"name", entry.text},
                       {"cat", "note"},
                       {"ts", microseconds(entry)},
                       {"pid", process_of(entry)},
                       {"args", {{entry.text, Json::parse(entry.detail)}}}});
  }

  Json arguments_of(size_t number) const {
    const Moment& moment = chronicle_.moments[number];
    Json arguments{{"event", number + 1}, {"text", text_of(chronicle_, moment)}};
    if (!moment.entry.id.empty()) arguments["id"] = moment.entry.id;
    if (!moment.entry.detail.empty()) arguments["says"] = moment.entry.detail;
    if (moment.entry.bytes > 0) arguments["bytes"] = moment.entry.bytes;
    if (!moment.tables.empty()) arguments["tables"] = moment.tables;
    return arguments;
  }

  // Each stream that does something has a thread of its own, far behind those of executions.
  uint64_t thread_of(const Entry& entry) {
    const StreamNote& note = *entry.stream;
    if (note.step == StreamNote::Step::given || note.step == StreamNote::Step::awaited)
      return kStrand;
    auto& threads = streams_[process_of(entry)];
    const auto [found, is_new] = threads.try_emplace({note.device, note.stream}, threads.size());
    const uint64_t thread = kFirstStream + found->second;
    if (is_new) name_thread(process_of(entry), thread, stream_name(note));
    return thread;
  }

  void draw_moment(size_t number, const char* category, uint64_t thread) {
    const Moment& moment = chronicle_.moments[number];
    events_.push_back({{"ph", "X"},
                       {"name", text_of(chronicle_, moment)},
                       {"cat", category},
                       {"ts", microseconds(moment.entry)},
                       {"dur", kMomentMicroseconds},
                       {"pid", process_of(moment.entry)},
                       {"tid", thread},
                       {"args", arguments_of(number)}});
  }

  void draw_arrow(size_t number) {
    const MessageTrip& trip = chronicle_.messages[number];
    if (!trip.arrived) return;
    const auto end = [&](const char* phase, size_t at) {
      const Entry& entry = chronicle_.moments[at].entry;
      Json json{{"ph", phase},      {"id", number + 1},          {"name", "message"},
                {"cat", "message"}, {"ts", microseconds(entry)}, {"pid", process_of(entry)},
                {"tid", kStrand}};
      if (*phase == 'f') json["bp"] = "e";
      events_.push_back(std::move(json));
    };
    end("s", trip.sent);
    end("f", *trip.arrived);
  }

  // --- calls: from where they are made to their answer, at the caller ---

  struct OpenCall {
    size_t made = 0;  // moment
    size_t number = 0;
  };

  // Async: calls of one execution may lie across each other.
  Json call_event(const char* phase, const OpenCall& call, double when) const {
    const Entry& entry = chronicle_.moments[call.made].entry;
    return {{"ph", phase},
            {"cat", "call"},
            {"id", call.number},
            {"name", entry.text + " on " + chronicle_.workers.at(entry.peer)},
            {"pid", process_of(entry)},
            {"tid", kStrand},
            {"ts", when}};
  }

  void start_call(size_t number) {
    const Entry& entry = chronicle_.moments[number].entry;
    if (entry.peer >= chronicle_.workers.size()) return;
    const OpenCall call{number, ++calls_made_};
    Json event = call_event("b", call, microseconds(entry));
    event["args"] = arguments_of(number);
    if (!entry.stack.empty()) event["args"]["from"] = entry.stack;
    events_.push_back(std::move(event));
    open_calls_[{process_of(entry), entry.id}] = call;
  }

  void end_call(const Entry& entry) {
    const auto found = open_calls_.find({process_of(entry), entry.id});
    if (found == open_calls_.end()) return;
    Json event = call_event("e", found->second, microseconds(entry));
    event["args"] = {{"ended", entry.number == 0 ? "with its result" : "with an error"}};
    events_.push_back(std::move(event));
    open_calls_.erase(found);
  }

  // Those that have no answer: creations have when their value is there, the others never.
  void end_calls() {
    if (chronicle_.moments.empty()) return;
    std::map<std::string, double> served;
    for (const Moment& moment : chronicle_.moments)
      if (moment.entry.kind == EntryKind::event && moment.entry.event == EventKind::call_served)
        served[moment.entry.id] = microseconds(moment.entry);
    const double end = microseconds(chronicle_.moments.back().entry);
    for (const auto& [name, call] : open_calls_) {
      const auto there = served.find(name.second);
      events_.push_back(call_event("e", call, there == served.end() ? end : there->second));
    }
  }

  // --- executions ---

  struct Execution {
    uint64_t thread = 0;
    double since = 0;
    std::string text;
    std::optional<double> waits_since;
  };
  using Name = std::pair<std::string, std::string>;  // causal id and label

  // On the first thread of its worker that is free.
  void start_execution(const Entry& entry) {
    auto& running = running_[process_of(entry)];
    const Name name{entry.id, entry.text};
    if (running.contains(name)) return;
    std::vector<bool>& busy = busy_[process_of(entry)];
    size_t place = 0;
    while (place < busy.size() && busy[place]) ++place;
    if (place == busy.size()) {
      busy.push_back(false);
      name_thread(process_of(entry), place + 1, "execution " + std::to_string(place + 1));
    }
    busy[place] = true;
    running[name] = {place + 1, microseconds(entry), entry.text, {}};
  }

  // A wait lies on its execution.
  void start_wait(const Entry& entry) {
    auto& running = running_[process_of(entry)];
    const auto found = running.find({entry.id, entry.text});
    if (found != running.end()) found->second.waits_since = microseconds(entry);
  }

  void end_wait(const Entry& entry) {
    auto& running = running_[process_of(entry)];
    const auto found = running.find({entry.id, entry.text});
    if (found != running.end()) write_wait(process_of(entry), found->second, microseconds(entry));
  }

  void write_wait(uint64_t process, Execution& execution, double until) {
    const std::optional<double> since = std::exchange(execution.waits_since, std::nullopt);
    if (!since) return;
    events_.push_back({{"ph", "X"},
                       {"name", "waits"},
                       {"cat", "wait"},
                       {"ts", *since},
                       {"dur", until - *since},
                       {"pid", process},
                       {"tid", execution.thread}});
  }

  void end_execution(const Entry& entry) {
    auto& running = running_[process_of(entry)];
    const auto found = running.find({entry.id, entry.text});
    if (found == running.end()) return;
    write(process_of(entry), found->first, found->second, microseconds(entry));
    running.erase(found);
  }

  void end_executions_of(const Entry& entry) {
    auto& running = running_[process_of(entry)];
    for (auto& [name, execution] : running)
      write(process_of(entry), name, execution, microseconds(entry));
    running.clear();
  }

  void end_executions() {
    if (chronicle_.moments.empty()) return;
    const double end = microseconds(chronicle_.moments.back().entry);
    for (auto& [process, running] : running_)
      for (auto& [name, execution] : running) write(process, name, execution, end);
  }

  void write(uint64_t process, const Name& name, Execution& execution, double until) {
    write_wait(process, execution, until);
    busy_[process][execution.thread - 1] = false;
    events_.push_back({{"ph", "X"},
                       {"name", execution.text},
                       {"cat", "execution"},
                       {"ts", execution.since},
                       {"dur", until - execution.since},
                       {"pid", process},
                       {"tid", execution.thread},
                       {"args", {{"id", name.first}}}});
  }

  const Chronicle& chronicle_;
  Json events_ = Json::array();
  uint64_t calls_made_ = 0;
  std::map<std::pair<uint64_t, std::string>, OpenCall> open_calls_;  // by process and id
  std::map<uint64_t, std::map<Name, Execution>> running_;            // by process
  std::map<uint64_t, std::vector<bool>> busy_;                       // threads of a process
  // By process, device and stream.
  std::map<uint64_t, std::map<std::pair<uint32_t, uint64_t>, uint64_t>> streams_;
};

}  // namespace

std::string perfetto_trace(const Chronicle& chronicle, const Subject& subject) {
  const Json json{{"traceEvents", Tracing(chronicle).run()},
                  {"displayTimeUnit", "ns"},
                  {"otherData",
                   {{"run", subject.title},
                    {"failure", subject.failure},
                    {"command", subject.command},
                    {"clock", "virtual"}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rehearsal::sim
