#include "sim/world/cluster_parts.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/base/check.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/thread_state.h"
#include "core/fibers/wait_queue.h"
#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"
#include "sim/device/machine.h"
#include "sim/oracles/oracles.h"
#include "sim/strategies/strategies.h"
#include "sim/world/coverage.h"

namespace rehearsal::sim {
namespace {

// Distinguishes the incarnations of a seed from its other hashes.
constexpr uint64_t kIncarnations = 0x696e6361726e6174;

// From the failure of a worker that recovers to its next life: longer than the others need to hear
// of the failure, so that their own come before it; and longer with each life.
constexpr Duration kStartAgain = std::chrono::milliseconds(100);
constexpr uint32_t kStartAgainTimesMax = 100;

// Returns the number of threads to go back to. The inter-op number can be set once in a process,
// and not after its pool has been used: then it stays.
int use_one_thread() {
  if (at::get_num_interop_threads() != 1) {
    try {
      at::set_num_interop_threads(1);
    } catch (const c10::Error&) {
    }
  }
  const int before = at::get_num_threads();
  if (before != 1) at::set_num_threads(1);
  return before;
}

std::unique_ptr<Strategy> strategy_of(const ClusterOptions& options, KeyedDecisions& decisions) {
  auto strategy = make_strategy(options.strategy, decisions);
  if (strategy != nullptr && options.record_choices)
    return std::make_unique<HeldBack>(decisions, std::move(strategy));
  if (strategy == nullptr && decisions.gives(DecisionKind::hold))
    return std::make_unique<HeldBack>(decisions);
  return strategy;
}

// Reads the type of a frame's message, for rules.
uint32_t message_type_of(Codec& codec, const Frame& frame) {
  if (frame.header.kind != FrameKind::message || frame.body == nullptr) return 0;
  const Result<Message> message = codec.decode(*frame.body);
  return message.ok() ? message.value().type() : 0;
}

}  // namespace

ClusterParts::ClusterParts(Seed seed, const Program& program, ClusterOptions options)
    : seed_(seed),
      program_(program),
      options_(std::move(options)),
      names_(program.names()),
      torch_threads_before_(use_one_thread()),
      decisions_(seed, options_.overrides, options_.otherwise, options_.record_choices,
                 options_.redraws),
      peer_timeout_(least_peer_timeout()),
      plan_(draw_faults(decisions_, options_, names_.size(), peer_timeout_)),
      strategy_(strategy_of(options_, decisions_)),
      recorder_(world_.queue, decisions_),
      network_(world_.queue, decisions_, names_, network_options()),
      disks_(names_.size()),
      lives_(names_.size()),
      decisions_of_(names_.size(), 0) {
  if (!fibers::default_generator_is_ours())
    throw std::runtime_error(
        "LibTorch does not ask this program for its default generator: link "
        "LibTorch as a shared library");
  if (!fibers::wait_queue_is_ours())
    throw std::runtime_error(
        "Boost.Fiber's primitives do not ask this program before they wait: link the shared "
        "library, and one that was not linked with -Bsymbolic-functions");
  if (options_.stacks == nullptr) own_stacks_.emplace();
  world_.decisions = &decisions_;
  world_.findings = &recorder_.findings();
  world_.stacks = own_stacks_ ? &*own_stacks_ : options_.stacks;
  world_.scheduling = plan_.scheduling;
  world_.clocks = plan_.machines.clocks;
  recorder_.set_clocks(world_.clocks);
  if (plan_.machines.any()) make_machines();
  if (plan_.madness)
    mad_ = std::make_unique<MadWorker>(plan_.madness->worker, plan_.madness->one_in,
                                       static_cast<uint32_t>(names_.size()), decisions_);
  world_.queue.set_strategy(strategy_.get(), window());
  if (options_.profile) world_.queue.set_profile(&profile_);
  network_.set_default_link(plan_.link);
  network_.share_bandwidth(plan_.worker_bytes_per_second);
  network_.set_weather(plan_.weather);
  network_.set_inspector([codec = std::shared_ptr<Codec>(make_protobuf_codec())](
                             const Frame& frame) { return message_type_of(*codec, frame); });
  crashes_ = plan_.crashes;
  for (const auto& [worker, event] : options_.crash_points)
    crashes_.push_back(draw_restart(decisions_, options_.restart,
                                    {.worker = worker, .event = event}, crashes_.size()));
  add_judges();
  add_traces();
  for (const NamedInvariant& invariant : options_.invariants) add_invariant(invariant);
  if (options_.event_lines != nullptr)
    recorder_.set_lines(&lines_.emplace(*options_.event_lines, names_));
  if (options_.choice_lines != nullptr) decisions_.write_lines_to(options_.choice_lines);
  if (options_.history != nullptr) record_history();
}

void ClusterParts::add_traces() {
  for (Trace* trace : options_.traces) recorder_.add(*trace);
  if (options_.coverage != nullptr) recorder_.add(*options_.coverage);
}

void ClusterParts::record_history() {
  history_.emplace(*options_.history, world_.queue, program_);
  recorder_.set_history(&*history_);
  network_.set_witness(&*history_);
  decisions_.set_listener([this](const Override& given) { history_->on_decision(given); });
}

// All that comes later is the taking apart of the cluster.
void ClusterParts::stop_recording_history() {
  if (!history_) return;
  if (failed()) history_->on_finding_afterwards(recorder_.findings().first()->oracle);
  recorder_.set_history(nullptr);
  network_.set_witness(nullptr);
  history_.reset();
}

void ClusterParts::make_machines() {
  const auto jumped = [this](WorkerId worker) {
    if (!lives_[worker.value].empty()) life(worker).runtime().clock_jumped();
  };
  machines_ = std::make_unique<Machines>(world_, plan_.machines,
                                         static_cast<uint32_t>(names_.size()), jumped);
  recorder_.set_machines(machines_.get());
}

ClusterParts::~ClusterParts() {
  if (options_.report != nullptr) {
    if (!finished_) report_choices();
    *options_.report = std::move(report_);
  }
  for (auto& lives : lives_)
    for (auto& life : lives) {
      pulse_->begin(life->id().worker.value, life->name());
      life->abandon();
    }
  pulse_->end();
  for (auto& lives : lives_)
    for (auto& life : lives) life->discard_node();
  lives_.clear();
  if (torch_threads_before_ != 1) at::set_num_threads(torch_threads_before_);
}

NodeOptions ClusterParts::node_options(WorkerId worker, uint32_t life) {
  NodeOptions options;
  options.id = worker;
  options.life = life;
  if (program_.is_dynamic() && worker.value == 0 && life > 0)
    options.founds_after = living_beside(worker);
  options.seed = seed_;
  options.names = names_;
  options.devices = {
      .type = SimulatedDevices::kType, .count = options_.devices, .engine_has_threads = false};
  options.incarnation =
      incarnation_of(worker, mix(mix(seed_.value ^ kIncarnations, worker.value), life));
  if (options_.adjust_node) options_.adjust_node(options);
  if (options_.exception_traces)
    options.exception_witness = [this](const Error& error) { throws_->became(error); };
  return options;
}

std::vector<WorkerId> ClusterParts::living_beside(WorkerId worker) const {
  std::vector<WorkerId> living;
  for (uint32_t id = 0; id < lives_.size(); ++id)
    if (id != worker.value && !lives_[id].empty() && !lives_[id].back()->over())
      living.push_back(WorkerId{id});
  return living;
}

// The shortest of all workers.
Duration ClusterParts::least_peer_timeout() {
  Duration least = node_options(WorkerId{0}, 0).peer_timeout;
  if (!options_.adjust_node) return least;
  for (uint32_t id = 1; id < names_.size(); ++id)
    least = std::min(least, node_options(WorkerId{id}, 0).peer_timeout);
  return least;
}

// A loss or a silence that mild or hostile faults make must stay well below `peer_timeout`.
net_fake::NetworkOptions ClusterParts::network_options() const {
  net_fake::NetworkOptions network = options_.network;
  network.user_timeout = std::min(network.user_timeout, peer_timeout_ / 2);
  network.connect_timeout = std::min(network.connect_timeout, peer_timeout_ / 8);
  if (plan_.buffer_bytes > 0) {
    network.socket_buffer_bytes = plan_.buffer_bytes / 4;
    network.high_water_bytes = plan_.buffer_bytes;
    network.low_water_bytes = plan_.buffer_bytes / 4;
  }
  while (network.losses_max > 1 &&
         network.retransmission_timeout * (1 << network.losses_max) > peer_timeout_ / 4)
    --network.losses_max;
  return network;
}

void ClusterParts::add_oracle(std::unique_ptr<Oracle> oracle) {
  REHEARSAL_CHECK(!begun_, "oracles are added before the run begins");
  recorder_.add(*oracle);
  oracles_.push_back(std::move(oracle));
}

// Nothing holds for a mad worker.
void ClusterParts::add_judge(std::unique_ptr<Oracle> oracle) {
  add_oracle(mad_ ? without_worker(mad_->worker(), std::move(oracle)) : std::move(oracle));
}

Life& ClusterParts::life(WorkerId worker) {
  auto& lives = lives_.at(worker.value);
  REHEARSAL_CHECK(!lives.empty(), worker);
  return *lives.back();
}

// The loop.

void ClusterParts::begin() {
  if (std::exchange(begun_, true)) return;
  if (options_.exception_traces) throws_.emplace();
  const bool late = program_.is_dynamic() && options_.faults != FaultLevel::none;
  for (uint32_t i = 0; i < names_.size(); ++i) {
    const WorkerId worker{i};
    const Duration wait = late && i > 0 ? draw_boot(decisions_, worker) : Duration{};
    if (wait.count() == 0)
      restart(worker);
    else
      restart_after(worker, wait);
  }
  storm_end_ = actions_.size();
  at(Instant{} + options_.storm, [this] { calm(); });
}

bool ClusterParts::step(Instant limit) {
  if (failed()) return false;
  const auto next = world_.queue.peek();
  if (!next || next->when > limit) return false;
  if (is_check_due(next->when)) {
    check(/*idle=*/false);
    if (failed()) return false;
  }
  const WorkerId worker = next->what->worker(next->ticket);
  const bool of_worker = worker.value < decisions_of_.size();
  if (of_worker) {
    if (machines_ && machines_->keeps(*next, worker, decisions_of_[worker.value])) return true;
    if (!crashes_.empty()) {
      if (const auto due = crash_due(worker)) {
        world_.queue.move_to(next->when);
        crash(*due);
        judge_values();
        return true;
      }
    }
  }
  run_event(*next, worker);
  return true;
}

void ClusterParts::run_event(const EventQueue::Event& next) {
  run_event(next, next.what->worker(next.ticket));
}

void ClusterParts::run_event(const EventQueue::Event& next, WorkerId worker) {
  const bool of_worker = worker.value < decisions_of_.size();
  if (of_worker) ++decisions_of_[worker.value];
  world_.queue.take(next);
  if (machines_ && of_worker) machines_->spend_time(worker);
  if (of_worker) pulse_->begin(worker.value, names_[worker.value]);
  {
    std::optional<HistoryRecorder::Step> step;
    if (history_ && of_worker) step.emplace(*history_, life(worker).id());
    next.what->happen(next.ticket);
    if (mad_ && of_worker && worker == mad_->worker()) lie();
  }
  judge_values();
  pulse_->end();
  if (history_ && of_worker) history_->after_step(life(worker).id(), life(worker).node().census());
  if (options_.coverage != nullptr && of_worker)
    options_.coverage->after_step(worker, life(worker).node().census());
  bound_instant();
  ask_whether_to_go_on();
  if (until_check_-- == 0) check(/*idle=*/false);
}

void ClusterParts::lie() {
  Life& liar = life(mad_->worker());
  if (calm_ || liar.over()) return;
  if (auto lie = mad_->lie_after(decisions_of_[mad_->worker().value]))
    liar.runtime().post([&liar, lie = std::move(*lie)]() mutable {
      liar.node().say(lie.to, std::move(lie.message));
    });
}

std::optional<LifeId> ClusterParts::running() {
  const uint32_t worker = pulse_->worker;
  if (worker == RunPulse::kNobody) return std::nullopt;
  return life(WorkerId{worker}).id();
}

std::optional<PlannedCrash> ClusterParts::crash_due(WorkerId worker) {
  const auto found = std::find_if(crashes_.begin(), crashes_.end(), [&](const auto& crash) {
    return crash.worker == worker && crash.event <= decisions_of_[worker.value];
  });
  if (found == crashes_.end()) return std::nullopt;
  const PlannedCrash crash = *found;
  crashes_.erase(found);
  if (lives_[worker.value].empty() || life(worker).over()) return std::nullopt;
  return crash;
}

void ClusterParts::run_to_end() {
  if (finished_) return;
  const fibers::DefaultThreadState state;
  begin();
  while (!all_over()) {
    if (!step()) {
      if (!failed()) check(/*idle=*/true);
      break;
    }
    bound_time();
  }
  over_at_ = world_.queue.now();
  if (!failed()) drain();
  finish();
}

bool ClusterParts::all_over() {
  if (restarts_pending_ > 0) return false;
  while (over_before_ < lives_.size() && lives_[over_before_].back()->over()) ++over_before_;
  return over_before_ == lives_.size();
}

// Faults.

void ClusterParts::at(Instant when, std::function<void()> action) {
  actions_.push_back(std::move(action));
  acts_until_ = std::max(acts_until_, when);
  world_.queue.at(when, *this, actions_.size() - 1);
}

void ClusterParts::crash(const PlannedCrash& crash) {
  const WorkerId worker = crash.worker;
  Life& dying = life(worker);
  if (dying.over()) return;
  ++crash_count_;
  recorder_.note("crash", dying.id());
  pulse_->begin(worker.value, names_[worker.value]);
  dying.crash();
  pulse_->end();
  ++world_.turns;  // Values have gone, perhaps without any.
  for (const auto& oracle : oracles_) oracle->on_crash(dying.view());
  if (options_.coverage != nullptr) options_.coverage->on_crash(worker);
  if (crash.loses_disk) disks_[worker.value].lose();
  if (!crash.restarts) return;
  restart_after(worker, crash.restart_after);
}

void ClusterParts::restart_after(WorkerId worker, Duration time) {
  ++restarts_pending_;
  at(world_.queue.now() + time, [this, worker] {
    --restarts_pending_;
    restart(worker);
  });
}

// A worker that recovers begins again. And one that has left a dynamic group may come again, once,
// where crashed workers may come back.
void ClusterParts::main_ended(const LifeId& ended) {
  Life& over = life(ended.worker);
  note_waits(over);
  if (!over.result()->ok() && over.node().starts_again()) {
    returned_ = true;
    restart_after(ended.worker, kStartAgain * (1 + std::min(ended.life, kStartAgainTimesMax)));
    return;
  }
  const bool may_return = program_.is_dynamic() && options_.restart != Restart::never && !calm_ &&
                          ended.life == 0 && life(ended.worker).result()->ok();
  if (!may_return) return;
  const std::optional<Duration> wait = draw_return(decisions_, ended);
  if (!wait) return;
  returned_ = true;
  restart_after(ended.worker, *wait);
}

void ClusterParts::give_up(WorkerId worker, WorkerId peer) {
  Life& giving = life(worker);
  if (giving.over()) return;
  given_up_ = true;
  recorder_.note("give up " + names_[peer.value], giving.id());
  giving.runtime().post([&giving, peer] { giving.node().give_up(peer); });
}

void ClusterParts::restart(WorkerId worker) {
  auto& lives = lives_[worker.value];
  REHEARSAL_CHECK(lives.empty() || lives.back()->over(), worker, "is alive");
  const LifeId id{worker, static_cast<uint32_t>(lives.size())};
  if (id.life > 0) recorder_.note("restart", id);
  NodeOptions options = node_options(worker, id.life);
  const std::shared_ptr<device::Machine> devices = make_devices(id);
  options.lending = make_lending(id, devices);
  if (devices != nullptr) options.devices.copied_at_once = draw_copied_at_once(id);
  lives.push_back(std::make_unique<Life>(
      std::move(options), program_, id,
      Life::Environment{world_, network_, pool_, recorder_, disks_[worker.value],
                        [this, id] { main_ended(id); },
                        mad_ && mad_->worker() == worker ? mad_.get() : nullptr, devices}));
  over_before_ = std::min<size_t>(over_before_, worker.value);
  lives.back()->start();
}

void ClusterParts::pause(WorkerId worker, Duration time) {
  if (!machines_) make_machines();
  long_pause_ |= time > peer_timeout_ / 2;
  paused_until_ = std::max(paused_until_, world_.queue.now() + time);
  acts_until_ = std::max(acts_until_, paused_until_);
  recorder_.note("pause", life(worker).id());
  machines_->pause(worker, time);
}

void ClusterParts::calm() {
  if (std::exchange(calm_, true)) return;
  actions_[storm_end_] = nullptr;
  calm_since_ = world_.queue.now();
  recorder_.note("calm", {});
  world_.queue.set_strategy(nullptr, {});
  world_.queue.set_profile(nullptr);
  std::erase_if(crashes_, [this](const PlannedCrash& crash) {
    return std::find_if(options_.crash_points.begin(), options_.crash_points.end(),
                        [&crash](const CrashPoint& point) {
                          return point.worker == crash.worker && point.decision == crash.event;
                        }) == options_.crash_points.end();
  });
  network_.set_weather({});
  network_.heal();
  if (machines_) machines_->heal();
  if (mad_ && !lives_[mad_->worker().value].empty()) crash({.worker = mad_->worker()});
}

// The end.

// Run the events left when all mains have ended: frames on their way, deadlines of nobody.
void ClusterParts::drain() {
  calm();
  while (step()) bound_time();
}

}  // namespace rehearsal::sim
