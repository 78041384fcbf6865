#include "sim/hunt/report_folder.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "sim/explain/critical_pair.h"
#include "sim/explain/html_page.h"
#include "sim/explain/perfetto_trace.h"
#include "sim/explain/text_diagram.h"

namespace rehearsal::sim {
namespace {

constexpr Duration kPairTime = std::chrono::seconds(10);

// A scene may make several clusters: the last one is told.
class LastHistory final : public HistorySink {
 public:
  void begin(const std::vector<std::string>& workers) override {
    history_ = {};
    history_.begin(workers);
  }
  void add(Entry entry) override { history_.add(std::move(entry)); }
  [[nodiscard]] bool empty() const { return history_.entries().empty(); }
  [[nodiscard]] Chronicle chronicle() const { return chronicle_of(history_); }

 private:
  History history_;
};

std::optional<Chronicle> chronicle_of_holding(TrialRuns& runs, const ChosenRun& run) {
  LastHistory history;
  if (runs.attempt(run, {.history = &history}) || history.empty()) return std::nullopt;
  return history.chronicle();
}

// Of the runs that lack one decision and hold: a true exchange of two events rather than the
// presence of one; of these, the one nearest to the failure.
std::optional<CriticalPair> best_pair(TrialRuns& runs, const ChosenRun& run,
                                      const Chronicle& failing) {
  const WallTime searching;
  std::optional<CriticalPair> best;
  const auto rank = [](const CriticalPair& pair) {
    return std::pair(pair.second.has_value(), pair.first);
  };
  for (size_t i = 0; i < run.decisions.size() && searching.passed() < kPairTime; ++i) {
    ChosenRun without = run;
    without.decisions.erase(without.decisions.begin() + static_cast<ptrdiff_t>(i));
    const auto holding = chronicle_of_holding(runs, without);
    if (!holding) continue;
    auto pair = critical_pair(failing, *holding, to_string(run.decisions[i]));
    if (pair && (!best || rank(*pair) > rank(*best))) best = std::move(pair);
  }
  return best;
}

bool write_file(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file);
  out << text;
  return static_cast<bool>(out.flush());
}

}  // namespace

bool write_report_folder(TrialRuns& runs, const Hunted& hunted) {
  const std::filesystem::path folder(hunted.report);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!write_run((folder / "failure.run").string(), hunted.run, hunted.failure->message))
    return false;
  const std::string command = runs.task().command_of(hunted.run);
  const std::string text = describe(hunted, command) + "\n";
  LastHistory history;
  std::ofstream lines(folder / "events.txt");
  static_cast<void>(runs.attempt(hunted.run, {.event_lines = &lines, .history = &history}));
  const bool has_events = lines.tellp() > 0;
  lines.close();
  if (!has_events) std::filesystem::remove(folder / "events.txt", error);
  if (history.empty()) return write_file(folder / "failure.txt", text) && !lines.fail();
  const std::string& message = hunted.failure->message;
  const Chronicle chronicle = history.chronicle();
  Subject subject{.title = runs.task().name + ", seed " + std::to_string(hunted.run.seed.value),
                  .failure = message.substr(0, message.find('\n')),
                  .command = command,
                  .critical = {}};
  if (hunted.run.otherwise == Otherwise::benign)
    subject.critical = best_pair(runs, hunted.run, chronicle);
  return write_file(folder / "failure.html", html_page(chronicle, subject)) &&
         write_file(folder / "failure.trace.json", perfetto_trace(chronicle, subject)) &&
         write_file(folder / "failure.txt", text_diagram(chronicle, subject) + text) &&
         !lines.fail();
}

}  // namespace rehearsal::sim
