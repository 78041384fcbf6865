#include "sim/replay/recorded_run.h"

#include <algorithm>
#include <utility>

#include "sim/oracles/oracles.h"
#include "sim/replay/merged_events.h"
#include "sim/replay/replay.h"

namespace rehearsal::sim {
namespace {

// A worker does something at least as often as its heartbeats, and when a timer is due: time beyond
// this in which it does nothing, it may not have been running.
constexpr Duration kStillness = std::chrono::milliseconds(200);

class Keeper final : public Trace {
 public:
  explicit Keeper(EventList& list) : list_(list) {}
  void on_event(const Event& event) override {
    list_.events.emplace_back(event, std::exchange(begins_, false));
  }
  void on_entry() { begins_ = true; }

 private:
  EventList& list_;
  bool begins_ = true;
};

class Judgement {
 public:
  Judgement(const std::vector<RecordedLife>& lives, const std::function<Program()>& fresh_program,
            const RecordedRunOptions& options)
      : lives_(lives), fresh_program_(fresh_program), options_(options) {}

  RecordedRunReport run() {
    report_.lives = lives_.size();
    for (const RecordedLife& life : lives_) replay_life(life);
    if (!findings_.first()) judge_events();
    report_.finding = findings_.first();
    return std::move(report_);
  }

 private:
  struct Life {
    net_fake::LifeId id;
    std::string name;
    bool crashed = false;
    std::optional<Status> result;
    std::optional<NodeCensus> census;
    bool dynamic = false;
    Instant last{};
    Duration stillness{};
  };

  void replay_life(const RecordedLife& recorded) {
    const NodeOptions& node = recorded.record->header.node;
    EventList& list = lists_.emplace_back();
    list.worker = node.id;
    list.incarnation = node.incarnation;
    Keeper keeper(list);
    const Program program = fresh_program_();
    const ReplayReport replayed =
        replay(*recorded.record, program,
               {.trace = &keeper, .on_entry = [&keeper] { keeper.on_entry(); }});
    if (replayed.divergence)
      findings_.fail("replay", "worker '" + node.names[node.id.value] + "'",
                     recorded.name + " says what this program does not do: entry " +
                         std::to_string(replayed.divergence->entry) + " (" +
                         replayed.divergence->input + "): " + replayed.divergence->text);
    list.cut_off = !replayed.ended;
    Life& life = played_.emplace_back();
    life.id = {node.id, node.life};
    life.name = node.names[node.id.value];
    life.crashed = !replayed.ended;
    if (replayed.ended) life.result = replayed.failure ? Status(*replayed.failure) : Status(Unit{});
    life.census = replayed.census_at_end;
    life.dynamic = program.is_dynamic();
    report_.events += list.events.size();
  }

  void judge_events() {
    MergedEvents merged(lists_);
    std::set<WorkerId> left_out;
    for (const auto& [worker, incarnation] : merged.unknown()) left_out.insert(worker);
    const std::vector<std::string>& names = lives_.front().record->header.node.names;
    for (const WorkerId worker : left_out)
      report_.unrecorded.push_back("worker '" + names[worker.value] + "'");
    std::vector<std::unique_ptr<Oracle>> judges = oracles();
    for (std::unique_ptr<Oracle>& oracle : judges)
      for (const WorkerId worker : left_out) oracle = without_worker(worker, std::move(oracle));
    while (const auto next = findings_.first() ? std::nullopt : merged.next()) show(*next, judges);
    for (const std::unique_ptr<Oracle>& oracle : judges)
      if (!findings_.first()) oracle->at_end(view(), findings_);
  }

  std::vector<std::unique_ptr<Oracle>> oracles() {
    std::vector<std::unique_ptr<Oracle>> all;
    all.push_back(make_at_most_once());
    all.push_back(make_completion());
    all.push_back(make_rref_conservation());
    all.push_back(make_context_pairing());
    all.push_back(make_optimizer());
    all.push_back(make_back_pressure(lives_.front().record->header.node.window_frames));
    all.push_back(make_no_leak());
    all.push_back(make_destructors());
    all.push_back(make_leaked_references(options_.strict_leaks, leaks_));
    return all;
  }

  void show(const MergedEvents::Next& next, const std::vector<std::unique_ptr<Oracle>>& judges) {
    Life& life = played_[next.life];
    const Event event = lists_[next.life].events[next.event].event();
    if (event.when - life.last > kStillness) life.stillness += event.when - life.last;
    life.last = event.when;
    const Observation seen{.event = event,
                           .life = life.id,
                           .incarnation = lists_[next.life].incarnation,
                           .when = event.when,
                           .busy_time = life.stillness,
                           .shown = event.when};
    for (const std::unique_ptr<Oracle>& oracle : judges) {
      if (oracle->watched().has(event.kind)) oracle->on_event(seen, findings_);
      if (next.is_last && life.crashed) oracle->on_crash(view_of(next.life));
    }
  }

  LifeView view_of(size_t number) const {
    const Life& life = played_[number];
    return {.id = life.id,
            .name = life.name,
            .incarnation = lists_[number].incarnation,
            .census_at_end = life.census ? &*life.census : nullptr,
            .crashed = life.crashed,
            .result = life.result ? &*life.result : nullptr};
  }

  ClusterView view() const {
    ClusterView view;
    view.dynamic =
        std::any_of(played_.begin(), played_.end(), [](const Life& life) { return life.dynamic; });
    for (size_t i = 0; i < played_.size(); ++i) {
      view.lives.push_back(view_of(i));
      view.disturbed |= played_[i].crashed;
    }
    std::sort(view.lives.begin(), view.lives.end(),
              [](const LifeView& a, const LifeView& b) { return a.id < b.id; });
    return view;
  }

  const std::vector<RecordedLife>& lives_;
  const std::function<Program()>& fresh_program_;
  const RecordedRunOptions options_;
  RecordedRunReport report_;
  Findings findings_;
  std::vector<std::string> leaks_;
  std::vector<EventList> lists_;  // by life, as they were given
  std::vector<Life> played_;      // the same
};

}  // namespace

RecordedRunReport judge(const std::vector<RecordedLife>& lives,
                        const std::function<Program()>& fresh_program,
                        const RecordedRunOptions& options) {
  return Judgement(lives, fresh_program, options).run();
}

}  // namespace rehearsal::sim
