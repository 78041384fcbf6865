#include "sim/world/fault_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

namespace rehearsal::sim {
namespace {

using net_fake::Delay;
using net_fake::in_doublings;
using net_fake::kMillion;
using net_fake::LinkModel;
using net_fake::Preset;
using net_fake::text_of;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Numbers of keys: a class's own, then its strength's, then the run's.
constexpr uint64_t kStrengths = 64;
constexpr uint64_t kShare = 128;
constexpr uint64_t kAbout = 129;  // of a worker's own, and on

// Of a choice about no worker.
constexpr WorkerId kAnyWorker{0};

constexpr uint64_t kMegabyte = 1'000'000;
constexpr uint64_t kDriftMax = 500;  // millionths, either way

class Swarm {
 public:
  Swarm(net_fake::Decisions& decisions, const ClusterOptions& options)
      : decisions_(decisions), options_(options) {}

  // Not among those that the options leave out.
  bool allowed(FaultClass fault) const {
    const auto& without = options_.without;
    return std::find(without.begin(), without.end(), fault) == without.end();
  }
  bool on(FaultClass fault) {
    if (!allowed(fault)) return false;
    const uint64_t share = decisions_.choose(share_key(), kShares);
    return decisions_.choose(class_key(fault), kShares) + share >= kShares;
  }
  // Of n ways; 0 if the class is left out.
  uint64_t way(FaultClass fault, uint64_t n) {
    return allowed(fault) ? decisions_.choose(strength_key(fault), n) : 0;
  }
  // Between min and max, each doubling as likely as any other.
  uint64_t strength(FaultClass fault, uint64_t min, uint64_t max,
                    WorkerId worker = WorkerId{UINT32_MAX}) {
    uint64_t doublings = 0;
    while (min << (doublings + 1) <= max) ++doublings;
    const uint64_t drawn = decisions_.choose(strength_key(fault, worker), (doublings + 1) << 10);
    return std::min(max, in_doublings(min, drawn, 10));
  }
  // A number below n about a worker; `number` tells such numbers apart.
  uint64_t about(WorkerId worker, uint64_t number, uint64_t n) {
    return decisions_.choose(
        {.kind = DecisionKind::swarm, .subject = {worker, 0}, .number = kAbout + number}, n);
  }
  // The same if the class is on; else 0.
  uint64_t strength_if_on(FaultClass fault, uint64_t min, uint64_t max) {
    return on(fault) ? strength(fault, min, max) : 0;
  }

 private:
  net_fake::Decisions& decisions_;
  const ClusterOptions& options_;
};

LinkModel draw_link(Swarm& swarm) {
  LinkModel link{.delay = Delay::constant(microseconds(100))};
  switch (swarm.way(FaultClass::delays, 7)) {
    case 0:
      return link;
    case 1:
      return link_of(Preset::local);
    case 2:
      return link_of(Preset::rack);
    case 3:
      link.delay = Delay::exponential(microseconds(20), microseconds(45));
      return link;
    case 4:
      link.delay =
          Delay::bimodal(microseconds(20), microseconds(300),
                         {.min = milliseconds(2), .max = milliseconds(100), .millionths = 20'000});
      return link;
    case 5:
      return link_of(Preset::wan);
    default:
      return link_of(Preset::hostile);
  }
}

SchedulingModel draw_scheduling(Swarm& swarm) {
  const auto model = [](Duration longest) {
    const Delay delay = Delay::uniform({}, longest);
    return SchedulingModel{.start = delay, .resume = delay, .timer = delay};
  };
  switch (swarm.way(FaultClass::scheduling, 4)) {
    case 0:
      return {};
    case 1:
      return model(microseconds(10));
    case 2:
      return model(microseconds(300));
    default:
      return model(milliseconds(5));
  }
}

void draw_partitions(Swarm& swarm, const ClusterOptions& options, Duration peer_timeout,
                     net_fake::Weather& weather) {
  if (options.long_partitions && swarm.allowed(FaultClass::partitions)) {
    weather.partition_millionths = swarm.strength(FaultClass::partitions, 3'000, 50'000);
    weather.partition_min = peer_timeout / 8;
    weather.partition_max = peer_timeout * 3;
    weather.partition_gap = peer_timeout;
    return;
  }
  if (options.faults != FaultLevel::hostile) return;
  weather.partition_millionths = swarm.strength_if_on(FaultClass::partitions, 300, 20'000);
  weather.clog_millionths = swarm.strength_if_on(FaultClass::clogs, 300, 20'000);
  weather.partition_max = peer_timeout / 5;
  weather.partition_gap = peer_timeout / 10;
}

// Connections that break behind so many messages, or behind so many frames: acknowledgements count.
void draw_short_lives(Swarm& swarm, net_fake::Weather& weather) {
  const uint64_t life = swarm.strength_if_on(FaultClass::short_lives, 1, 32);
  if (life > 0 && swarm.about(kAnyWorker, 2, 2) == 1)
    weather.life_frames = life;
  else
    weather.life_messages = life;
}

// Every worker's clock began at another time, up to twelve days ago, and runs fast or slow.
void draw_clocks(Swarm& swarm, const ClusterOptions& options, size_t workers, Duration peer_timeout,
                 MachineFaults& machines) {
  if (options.faults == FaultLevel::none || !swarm.on(FaultClass::clocks)) return;
  for (uint32_t i = 0; i < workers; ++i) {
    LocalClock clock;
    const WorkerId worker{i};
    clock.offset = microseconds(1) * static_cast<int64_t>(swarm.strength(
                                         FaultClass::clocks, 1, uint64_t{1} << 40, worker));
    const auto drift = static_cast<int64_t>(swarm.about(worker, 0, 2 * kDriftMax + 1));
    clock.drift_millionths = drift % 2 == 0 ? drift / 2 : -(drift + 1) / 2;
    machines.clocks.push_back(clock);
  }
  if (options.faults != FaultLevel::hostile && !options.long_pauses) return;
  machines.jump_millionths = swarm.strength(FaultClass::clocks, 200, 20'000);
  machines.jump_max = options.long_pauses ? peer_timeout * 3 : peer_timeout / 16;
  machines.jump_gap = peer_timeout;
}

// Long pauses are asked for; others are shorter than what makes a peer lost.
void draw_pauses(Swarm& swarm, const ClusterOptions& options, Duration peer_timeout,
                 MachineFaults& machines) {
  if (options.long_pauses && swarm.allowed(FaultClass::pauses)) {
    machines.pause_millionths = swarm.strength(FaultClass::pauses, 2'000, 20'000);
    machines.pause_min = peer_timeout / 8;
    machines.pause_max = peer_timeout * 3;
    machines.pause_gap = peer_timeout;
  } else if (options.faults == FaultLevel::hostile) {
    machines.pause_millionths = swarm.strength_if_on(FaultClass::pauses, 300, 20'000);
    machines.pause_max = peer_timeout / 16;
    machines.pause_gap = peer_timeout / 16;
  }
}

MachineFaults draw_machines(Swarm& swarm, const ClusterOptions& options, size_t workers,
                            Duration peer_timeout) {
  MachineFaults machines;
  draw_clocks(swarm, options, workers, peer_timeout, machines);
  draw_pauses(swarm, options, peer_timeout, machines);
  if (options.faults != FaultLevel::hostile || !swarm.on(FaultClass::slow_workers)) return machines;
  machines.steps.resize(workers);
  for (uint32_t i = 0; i < workers; ++i)
    if (swarm.about(WorkerId{i}, 1, 2) == 1)
      machines.steps[i] = microseconds(1) * static_cast<int64_t>(swarm.strength(
                                                FaultClass::slow_workers, 10, 2'000, WorkerId{i}));
  return machines;
}

net_fake::Weather draw_weather(Swarm& swarm, const ClusterOptions& options, Duration peer_timeout) {
  net_fake::Weather weather;
  if (options.faults != FaultLevel::none) {
    weather.retransmit_millionths = swarm.strength_if_on(FaultClass::retransmissions, 500, 60'000);
    weather.cut_millionths = swarm.strength_if_on(FaultClass::resets, 500, 60'000);
    weather.corrupt_millionths = swarm.strength_if_on(FaultClass::corruption, 500, 30'000);
    weather.refuse_millionths = swarm.strength_if_on(FaultClass::refusals, 10'000, 500'000);
    weather.hang_millionths = swarm.strength_if_on(FaultClass::hangs, 10'000, 300'000);
    weather.silence_millionths = swarm.strength_if_on(FaultClass::unheard_losses, 30'000, 500'000);
  }
  if (options.faults == FaultLevel::hostile) draw_short_lives(swarm, weather);
  draw_partitions(swarm, options, peer_timeout, weather);
  return weather;
}

std::vector<PlannedCrash> draw_crashes(net_fake::Decisions& decisions,
                                       const ClusterOptions& options, size_t workers) {
  std::vector<PlannedCrash> crashes;
  for (uint64_t i = 0; i < options.crashes; ++i) {
    PlannedCrash crash;
    const Key victim{.kind = DecisionKind::crash_victim, .number = i};
    crash.worker.value = static_cast<uint32_t>(decisions.choose(victim, workers));
    // Early moments are as likely as late ones: within each doubling up to 4,096 events.
    const Key moment{.kind = DecisionKind::crash_moment, .number = i};
    crash.event = in_doublings(1, decisions.choose(moment, uint64_t{12} << 12), 12);
    crashes.push_back(draw_restart(decisions, options.restart, crash, i));
  }
  return crashes;
}

PlannedMadness draw_madness(net_fake::Decisions& decisions, size_t workers) {
  const Key victim{.kind = DecisionKind::madness, .number = 0};
  const Key rate{.kind = DecisionKind::madness, .number = 1};
  PlannedMadness madness;
  madness.worker.value = static_cast<uint32_t>(decisions.choose(victim, workers));
  madness.one_in = in_doublings(4, decisions.choose(rate, uint64_t{8} << 4), 4);
  return madness;
}

std::string percent(uint64_t millionths) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%03llu %%",
                static_cast<unsigned long long>(millionths / 10'000),
                static_cast<unsigned long long>(millionths % 10'000 / 10));
  return text;
}

}  // namespace

Key share_key() { return {.kind = DecisionKind::swarm, .number = kShare}; }

Key class_key(FaultClass fault) {
  return {.kind = DecisionKind::swarm, .number = static_cast<uint64_t>(fault)};
}

Key strength_key(FaultClass fault, WorkerId worker) {
  const LifeId subject = worker.value == UINT32_MAX ? LifeId{} : LifeId{worker, 0};
  return {.kind = DecisionKind::swarm,
          .subject = subject,
          .number = kStrengths + static_cast<uint64_t>(fault)};
}

FaultPlan draw_faults(net_fake::Decisions& decisions, const ClusterOptions& options, size_t workers,
                      Duration peer_timeout) {
  Swarm swarm(decisions, options);
  FaultPlan plan;
  plan.link = options.network.link;
  plan.worker_bytes_per_second = options.network.worker_bytes_per_second;
  if (options.faults != FaultLevel::none) {
    plan.link = draw_link(swarm);
    plan.scheduling = draw_scheduling(swarm);
  }
  if (options.preset) {
    plan.link = link_of(*options.preset);
    plan.worker_bytes_per_second = plan.link.bytes_per_second;
  }
  plan.link = bounded(plan.link, peer_timeout / 16);
  plan.weather = draw_weather(swarm, options, peer_timeout);
  if (options.faults != FaultLevel::none) {
    const uint64_t bandwidth =
        swarm.strength_if_on(FaultClass::bandwidth, 20 * kMegabyte, 1'000 * kMegabyte);
    if (bandwidth > 0) plan.worker_bytes_per_second = bandwidth;
    plan.buffer_bytes = swarm.strength_if_on(FaultClass::buffers, 4'096, 1 << 20);
  }
  plan.machines = draw_machines(swarm, options, workers, peer_timeout);
  if (options.mad && swarm.allowed(FaultClass::madness))
    plan.madness = draw_madness(decisions, workers);
  if (swarm.allowed(FaultClass::crashes)) plan.crashes = draw_crashes(decisions, options, workers);
  return plan;
}

PlannedCrash draw_restart(net_fake::Decisions& decisions, Restart restart, PlannedCrash crash,
                          uint64_t number) {
  const Key key{.kind = DecisionKind::restart, .number = number};
  // Back at once is as likely as back when all have noticed: within each doubling from 0.1 ms.
  constexpr uint64_t kDoublings = 14;
  constexpr uint64_t kMoments = kDoublings << 10;
  const uint64_t drawn = decisions.choose(key, 4 * kMoments);
  const uint64_t moment = drawn % kMoments;
  const bool is_drawn = restart == Restart::drawn;
  crash.restarts = is_drawn ? drawn >= 2 * kMoments : restart != Restart::never;
  crash.loses_disk = is_drawn ? drawn >= 3 * kMoments : restart == Restart::amnesia;
  crash.restart_after = microseconds(1) * static_cast<int64_t>(in_doublings(100, moment, 10));
  return crash;
}

Duration draw_boot(net_fake::Decisions& decisions, WorkerId worker) {
  constexpr uint64_t kDoublings = 15;  // the first of them: at once
  const Key key{.kind = DecisionKind::boot, .subject = {worker, 0}};
  const uint64_t drawn = decisions.choose(key, kDoublings << 10);
  if (drawn < 1 << 10) return {};
  return microseconds(1) * static_cast<int64_t>(in_doublings(500, drawn, 10));
}

std::optional<Duration> draw_return(net_fake::Decisions& decisions, const LifeId& left) {
  constexpr uint64_t kMoments = 14 << 10;
  const Key key{.kind = DecisionKind::restart, .subject = left};
  const uint64_t drawn = decisions.choose(key, 3 * kMoments);
  if (drawn < 2 * kMoments) return std::nullopt;
  return microseconds(1) * static_cast<int64_t>(in_doublings(100, drawn % kMoments, 10));
}

namespace {

std::string chance_up_to(const std::string& what, uint64_t millionths, Duration longest) {
  return what + " " + percent(millionths) + " up to " + text_of(longest);
}

void describe_machines(const MachineFaults& machines, const std::vector<std::string>& names,
                       const std::function<void(const std::string&)>& add) {
  if (machines.pause_millionths > 0)
    add(chance_up_to("pauses", machines.pause_millionths, machines.pause_max));
  for (size_t i = 0; i < machines.steps.size(); ++i)
    if (machines.steps[i].count() > 0)
      add("a step of " + names[i] + " takes " + text_of(machines.steps[i]));
  for (size_t i = 0; i < machines.clocks.size(); ++i) {
    const LocalClock& clock = machines.clocks[i];
    add("clock of " + names[i] + " + " + text_of(clock.offset) + ", " +
        std::to_string(clock.drift_millionths) + " ppm");
  }
  if (machines.jump_millionths > 0)
    add(chance_up_to("jumps of clocks", machines.jump_millionths, machines.jump_max));
}

}  // namespace

std::string FaultPlan::describe(const std::vector<std::string>& names) const {
  std::string text = "links " + link.delay.describe();
  const auto add = [&text](const std::string& part) { text += ", " + part; };
  const auto add_percent = [&add](const std::string& what, uint64_t millionths) {
    if (millionths > 0) add(what + " " + percent(millionths));
  };
  const auto add_up_to = [&add](const std::string& what, uint64_t millionths, Duration longest) {
    if (millionths > 0) add(chance_up_to(what, millionths, longest));
  };
  if (link.bytes_per_second > 0) add(std::to_string(link.bytes_per_second / 1'000'000) + " MB/s");
  if (worker_bytes_per_second > 0)
    add("machines " + std::to_string(worker_bytes_per_second / kMegabyte) + " MB/s");
  if (buffer_bytes > 0) add("queues full after " + std::to_string(buffer_bytes) + " bytes");
  if (!scheduling.start.is_constant()) add("scheduling " + scheduling.start.describe());
  add_percent("resets", weather.cut_millionths);
  add_percent("retransmissions", weather.retransmit_millionths + link.retransmit_millionths);
  add_percent("flipped bits", weather.corrupt_millionths);
  add_percent("refusals", weather.refuse_millionths);
  add_percent("hanging connects", weather.hang_millionths);
  add_percent("unheard losses", weather.silence_millionths);
  const auto add_life = [&add](uint64_t life, const std::string& what) {
    if (life > 0)
      add("connections of every other link break after " + std::to_string(life) + " " + what +
          (life == 1 ? "" : "s"));
  };
  add_life(weather.life_messages, "message");
  add_life(weather.life_frames, "frame");
  add_up_to("partitions", weather.partition_millionths, weather.partition_max);
  add_up_to("clogs", weather.clog_millionths, weather.partition_max);
  describe_machines(machines, names, add);
  if (madness)
    add(names[madness->worker.value] + " lies after one event in " +
        std::to_string(madness->one_in));
  for (const PlannedCrash& crash : crashes)
    add("crash of " + names[crash.worker.value] + " at its event " + std::to_string(crash.event) +
        (crash.restarts ? ", back after " + text_of(crash.restart_after) : "") +
        (crash.loses_disk ? " without its disk" : ""));
  return text;
}

}  // namespace rehearsal::sim
