#include "core/groups/static_group.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/session/session.h"

namespace rehearsal {

StaticGroup::StaticGroup(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
                         Deadlines& deadlines, NodeView& view)
    : options_(options),
      strand_(strand),
      sessions_(sessions),
      deadlines_(deadlines),
      view_(view),
      misses_(options.names.size()),
      lives_(options.names.size()) {
  lives_[options.self.value] = options.life;
}

std::vector<WorkerId> StaticGroup::living() const {
  std::vector<WorkerId> workers;
  workers.reserve(options_.names.size());
  for (uint32_t id = 0; id < options_.names.size(); ++id)
    if (sessions_.joined(WorkerId{id})) workers.push_back(WorkerId{id});
  return workers;
}

WorkerId StaticGroup::coordinator() const {
  WorkerId first{0};
  while (!sessions_.joined(first)) ++first.value;  // At the latest it is this one.
  return first;
}

void StaticGroup::on_peer_joined(WorkerId peer, uint32_t life) {
  ++met_;
  lives_[peer.value] = life;
  std::erase_if(lost_, [peer](const auto& entry) { return entry.first == peer; });
  arrivals_.arrived(peer);
  told_met_.clear();
  if (told_ready_) sessions_.send(peer, Message{Ready{}});
  if (join_done_) settle_join();
  if (!arrived_ || leaving_) return;
  if (options_.mutants.on(Mutant::newcomers_not_told)) {
    last_report_ = report_now(0);  // as if it had been told
    return;
  }
  // It may work for as long as it likes, as all may.
  if (std::exchange(all_arrived_, false)) deadlines_.remove(shutdown_deadline_);
  set_phase(std::max(phase_, first_phase()));
  group_changed(peer);
}

// With the phase after it less than kPhaseMax, also where thousands of workers say that they have
// lived as often as anybody can.
uint32_t StaticGroup::first_phase() const {
  const uint64_t lives = std::accumulate(lives_.begin(), lives_.end(), uint64_t{0});
  return static_cast<uint32_t>(std::min<uint64_t>(2 * lives, kPhaseMax - 2));
}

uint64_t StaticGroup::lives_of_living() const {
  uint64_t lives = 0;
  for (const WorkerId worker : living()) lives += lives_[worker.value];
  return lives;
}

// Nothing that was reported about the group holds any more, and its coordinator may be another one.
void StaticGroup::group_changed(WorkerId worker) {
  reports_.erase(worker);
  last_report_.reset();
  wave_ = 0;
  progressed();
}

bool StaticGroup::on_message(WorkerId from, const Message& message) {
  if (std::holds_alternative<Ready>(message.content))
    on_ready(from);
  else if (const auto* view = std::get_if<GroupView>(&message.content))
    on_view(from, *view);
  else if (const auto* goodbye = std::get_if<Goodbye>(&message.content))
    on_goodbye(from, goodbye->error);
  else if (const auto* probe = std::get_if<ShutdownProbe>(&message.content))
    on_probe(from, *probe);
  else if (const auto* report = std::get_if<ShutdownReport>(&message.content))
    on_report(from, *report);
  else if (std::holds_alternative<Leave>(message.content))
    on_leave(from);
  else
    return false;
  return true;
}

// All that have said that they are quiet may have been told to go. The coordinator goes last, and
// says so before.
bool StaticGroup::may_have_left(WorkerId peer) const {
  return arrived_ && last_report_ && last_report_->quiet && peer != coordinator();
}

// ---- shutting down ----------------------------------------------------------

void StaticGroup::shut_down(Duration timeout, UniqueFunction<void(Status)> done) {
  shutdown_done_ = std::move(done);
  shutdown_timeout_ = timeout;
  arrived_ = true;
  set_phase(std::max(phase_, first_phase()));
  if (options_.mutants.on(Mutant::arrival_is_timed))
    deadlines_.add(strand_.runtime().now() + std::chrono::seconds(5), [this] {
      if (!all_arrived_)
        finish_shutdown(Error{.kind = ErrorKind::timeout,
                              .text = "not all have arrived at the shutdown in time",
                              .worker = strand_.name()});
    });
  progressed();
}

void StaticGroup::on_all_arrived() {
  if (std::exchange(all_arrived_, true)) return;
  sessions_.acknowledge_at_once();
  if (options_.mutants.on(Mutant::shutdown_has_five_seconds))
    shutdown_timeout_ = std::min<Duration>(shutdown_timeout_, std::chrono::seconds(5));
  shutdown_deadline_ = deadlines_.add(strand_.runtime().now() + shutdown_timeout_, [this] {
    strand_.mark("a shutdown timed out");
    finish_shutdown(
        Error{.kind = ErrorKind::timeout,
              .text = "the shutdown has not finished in time; " + missing_from_shutdown(),
              .worker = strand_.name()});
  });
  if (coordinator() != options_.self) return;
  tell_others(Message{ShutdownProbe{.phase = phase_, .wave = 0}});
  for (auto& [worker, report] : reports_) report.all_arrived = true;  // It is told.
  last_report_.reset();                                               // Ours is from before.
  progressed();
}

std::string StaticGroup::missing_from_shutdown() const {
  if (leaving_) return "it waits for acknowledgements";
  if (coordinator() != options_.self)
    return "it waits for '" + options_.names[coordinator().value] + "'" +
           (quiet() ? "" : ", and is busy itself" + left());
  std::string busy;
  std::string disagree;
  const std::vector<WorkerId> lost = sessions_.lost_workers();
  for (const WorkerId worker : living()) {
    const auto found = reports_.find(worker);
    const std::string name = " '" + options_.names[worker.value] + "'";
    if (found == reports_.end() || !found->second.quiet || found->second.phase != phase_) {
      busy += name + (worker == options_.self ? left() : "");
    } else if (found->second.lost != lost) {
      disagree += name;
    }
  }
  return "missing or busy:" + (busy.empty() ? " none" : busy) +
         (disagree.empty() ? "" : "; lost others than this worker:" + disagree);
}

std::string StaticGroup::left() const {
  const std::string left = view_.left();
  return left.empty() ? left : " (" + left + ")";
}

ShutdownReport StaticGroup::report_now(uint64_t wave) const {
  return {.phase = phase_,
          .wave = wave,
          .quiet = quiet(),
          .lost = sessions_.lost_workers(),
          .activity = view_.activity(),
          .all_arrived = all_arrived_,
          .lives = lives_of_living()};
}

// Looked at in a turn of its own: tables change in the middle of a task. Until all have arrived
// nothing ends: a worker says once that it has arrived, however often it is busy after that.
void StaticGroup::progressed() {
  if (!arrived_ || check_due_) return;
  if (!all_arrived_ && !leaving_ && last_report_) return;
  check_due_ = true;
  strand_.post([this] {
    check_due_ = false;
    recheck();
  });
}

void StaticGroup::recheck() {
  if (!shutdown_done_) return;
  if (leaving_) return settle_leaving();
  if (options_.mutants.on(Mutant::leaves_when_empty) && view_.quiet(1)) return leave();
  const ShutdownReport now = report_now(0);
  const bool changed = !last_report_ || last_report_->phase != now.phase ||
                       last_report_->quiet != now.quiet || last_report_->lost != now.lost;
  if (changed) report(0);
}

void StaticGroup::report(uint64_t wave) {
  const ShutdownReport report = report_now(wave);
  last_report_ = report;
  if (coordinator() == options_.self) return on_report(options_.self, report);
  sessions_.send(coordinator(), Message{report}, {.of_shutdown = true});
}

void StaticGroup::on_probe(WorkerId from, const ShutdownProbe& probe) {
  if (!arrived_ || from != coordinator()) return;
  on_all_arrived();
  if (probe.phase > phase_ || goes_back_to(probe.phase)) enter_phase(probe.phase);
  report(probe.wave);
  if (probe.wave == 0 || !last_report_->quiet) return;
  quiet_in_ = phase_;
  const bool may_be_last =
      phase_ % 2 == 1 || options_.mutants.on(Mutant::shutdown_skips_references);
  may_dismiss_ = may_be_last ? std::optional(from) : std::nullopt;
}

void StaticGroup::on_report(WorkerId from, const ShutdownReport& report) {
  if (leaving_) return;
  reports_[from] = report;
  if (coordinator() == options_.self) settle_phases(from);
  if (report.wave == 0 && from != options_.self) wave_ = 0;  // Something changed: ask anew.
  if (wave_ != 0 && report.wave == wave_) wave_answers_.insert(from);
  coordinate();
}

// At the coordinator. A former one may have told some that all have arrived, or of the next phase,
// and not all, and their reports may have come before we knew that we are the coordinator now.
void StaticGroup::settle_phases(WorkerId reporter) {
  catch_up();
  for (const auto& [worker, report] : reports_) {
    if (worker == options_.self) continue;
    const bool is_new = reporter == options_.self || reporter == worker || report.phase > phase_;
    if (is_new && must_be_told(report))
      sessions_.send(worker, Message{ShutdownProbe{phase_, 0}}, {.of_shutdown = true});
  }
}

// Enters the latest phase that is reported, once all living workers have reported: nothing can end
// before, so that nobody waits for this, and who works on keeps its references whatever a mad one
// says. Of a phase that cannot have begun we enter the one before it.
void StaticGroup::catch_up() {
  if (!arrived_ || !have_reported(living())) return;
  uint32_t latest = phase_;
  for (const auto& [worker, report] : reports_)
    latest = std::max(latest, can_have_begun(report.phase) ? report.phase : report.phase - 1);
  if (latest == phase_) return;
  enter_phase(latest);
  progressed();
}

// An even phase begins with a life that we may not have met. An odd one follows the even one before
// it, which a former coordinator has ended: each worker that it had not lost has said in a wave of
// that phase that all is quiet there. We are one of these in our first life: whoever has arrived
// has met it, and those who have lost it tell us nothing any more. A later life of ours may have
// come when that phase had ended.
bool StaticGroup::can_have_begun(uint32_t phase) const {
  if (phase % 2 == 0 || options_.life > 0) return true;
  return quiet_in_ && phase == *quiet_in_ + 1;
}

// A former coordinator was mad, or the present one is: it has told us, and not all, that calls have
// ended, and the others do not believe it. The references that we have released stay so.
bool StaticGroup::goes_back_to(uint32_t phase) const {
  return phase_ % 2 == 1 && phase + 1 == phase_;
}

bool StaticGroup::have_reported(const std::vector<WorkerId>& workers) const {
  return std::all_of(workers.begin(), workers.end(),
                     [this](WorkerId worker) { return reports_.contains(worker); });
}

// Whether its sender knows less than we do, or believes what we do not. A sender that has yet to
// meet a worker that has come back will say so when it has; it will not meet one that has come back
// and is lost again.
bool StaticGroup::must_be_told(const ShutdownReport& report) const {
  if (report.phase > phase_) return arrived_ && have_reported(living());
  const bool knows_less = report.phase < phase_ || (all_arrived_ && !report.all_arrived);
  const bool same_phases = report.phase / 2 == phase_ / 2;
  return knows_less && (same_phases || (report.lost == sessions_.lost_workers() &&
                                        report.lives == lives_of_living()));
}

void StaticGroup::coordinate() {
  if (!arrived_ || leaving_ || coordinator() != options_.self) return;
  std::vector<WorkerId> workers = living();
  if (options_.mutants.on(Mutant::shutdown_awaits_lost))
    for (const WorkerId worker : sessions_.lost_workers()) workers.push_back(worker);
  if (options_.mutants.on(Mutant::partial_barrier))
    std::erase_if(workers, [&](WorkerId worker) { return !reports_.contains(worker); });
  if (have_reported(workers)) on_all_arrived();
  const std::vector<WorkerId> lost = sessions_.lost_workers();
  const bool calm = std::all_of(workers.begin(), workers.end(), [&](WorkerId worker) {
    const auto found = reports_.find(worker);
    return found != reports_.end() && found->second.quiet && found->second.phase == phase_ &&
           found->second.lost == lost;
  });
  if (!calm) {
    wave_ = 0;
    return;
  }
  if (wave_ == 0) return start_wave();
  if (!std::all_of(workers.begin(), workers.end(),
                   [&](WorkerId worker) { return wave_answers_.contains(worker); }))
    return;
  const bool still = std::all_of(workers.begin(), workers.end(), [&](WorkerId worker) {
    return first_wave_.contains(worker) &&
           first_wave_.at(worker).activity == reports_.at(worker).activity;
  });
  wave_ = 0;
  if (still) return finish_phase();
  start_wave();
}

void StaticGroup::start_wave() {
  wave_ = next_wave_++;
  wave_answers_ = {options_.self};
  reports_[options_.self] = report_now(wave_);  // our first report and our answer: both of now
  first_wave_ = reports_;
  tell_others(Message{ShutdownProbe{phase_, wave_}});
  coordinate();
}

void StaticGroup::finish_phase() {
  if (phase_ % 2 == 0 && !options_.mutants.on(Mutant::shutdown_skips_references)) {
    enter_phase(phase_ + 1);
    reports_.clear();  // All are told of the phase that has begun, none needs to be told again.
    tell_others(Message{ShutdownProbe{phase_, 0}});
    return progressed();
  }
  tell_others(Message{Leave{}});
  leave();
}

void StaticGroup::tell_others(const Message& message) {
  for (const WorkerId worker : living())
    if (worker != options_.self) sessions_.send(worker, message, {.of_shutdown = true});
}

void StaticGroup::set_phase(uint32_t phase) {
  const bool were_released = phase_ % 2 == 1;
  phase_ = phase;
  if (were_released && phase_ % 2 == 0) view_.keep_references();
}

void StaticGroup::enter_phase(uint32_t phase) {
  set_phase(phase);
  last_report_.reset();
  may_dismiss_.reset();
  if (phase_ % 2 == 1) view_.release_references();
}

// From a coordinator that has heard of us in a wave, when we had released, that all is quiet here,
// and has asked nothing since, and nobody else. A worker may have come back to us meanwhile, which
// finds the group shut down.
void StaticGroup::on_leave(WorkerId from) {
  if (may_dismiss_ != from)
    return sessions_.accuse(from, {"Leave", "comes from a worker that has not asked for the end"});
  leave();
}

void StaticGroup::leave() {
  leaving_ = true;
  view_.refuse_calls();
  sessions_.acknowledge_at_once();
  for (const WorkerId worker : living())
    if (worker != options_.self) sessions_.expect_silence(worker);
  progressed();
}

// The worker that told the others to leave stays until they have it; bounded, since they may be
// gone before their acknowledgement arrives.
void StaticGroup::settle_leaving() {
  if (!sessions_.flushed()) {
    if (linger_deadline_.number > 0) return;
    linger_deadline_ = deadlines_.add(strand_.runtime().now() + options_.peer_timeout,
                                      [this] { finish_shutdown(Unit{}); });
    return;
  }
  finish_shutdown(Unit{});
}

void StaticGroup::finish_shutdown(Status status) {
  if (!shutdown_done_) return;
  deadlines_.remove(shutdown_deadline_);
  deadlines_.remove(linger_deadline_);
  auto done = std::move(shutdown_done_);
  shutdown_done_ = nullptr;
  if (status.ok() && !lost_.empty()) status = lost_.front().second;
  done(std::move(status));
}

void StaticGroup::on_peer_fenced(WorkerId peer, const Error& why) {
  --met_;
  // Its next life waits for everybody once more.
  ready_.erase(peer);
  misses_[peer.value].clear();
  if (leaving_) return progressed();
  if (may_dismiss_ == peer) may_dismiss_.reset();
  lost_.emplace_back(peer, why);
  if (join_done_ && !sessions_.may_come_again(peer)) finish_join(why);
  group_changed(peer);
}

MaybeError StaticGroup::refuses(const std::string& newcomer) const {
  if (!leaving_) return std::nullopt;
  // Nobody would serve it to the end.
  return Error{.kind = ErrorKind::node_stopped,
               .text = "worker '" + newcomer + "' came back when the group had shut down",
               .worker = newcomer};
}

uint64_t StaticGroup::when_here(WorkerId worker, UniqueFunction<void()> here) {
  if (!sessions_.linked(worker)) return arrivals_.add(worker, std::move(here));
  here();
  return 0;
}

void StaticGroup::fail(const Error& why) {
  arrivals_.clear();
  finish_join(why);
  finish_shutdown(why);
}

std::string StaticGroup::describe() const {
  if (join_done_) return "join waits for " + describe_missing() + "\n";
  if (shutdown_done_) return "shutdown: " + missing_from_shutdown() + "\n";
  return {};
}

}  // namespace rehearsal
