#include "sim/fault_plan.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace rehearsal::sim {
namespace {

using net_fake::Delay;
using net_fake::in_doublings;
using net_fake::kMillion;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// What of the run is drawn; part of the keys, so that a new one shifts no other.
enum class Property : uint64_t {
  delays,
  scheduling,
  retransmit_on,
  retransmit,
  cut_on,
  cut,
  refuse_on,
  refuse,
  silence_on,
  silence,
  partition_on,
  partition,
  long_partition,
};

class Swarm {
 public:
  explicit Swarm(net_fake::Decisions& decisions) : decisions_(decisions) {}

  uint64_t choose(Property property, uint64_t n) {
    return decisions_.choose(
        {.kind = DecisionKind::swarm, .number = static_cast<uint64_t>(property)}, n);
  }
  bool on(Property property) { return choose(property, 2) == 1; }

  // Between min and max, each doubling as likely as any other.
  uint64_t strength(Property property, uint64_t min, uint64_t max) {
    uint64_t doublings = 0;
    while (min << (doublings + 1) <= max) ++doublings;
    return std::min(max, in_doublings(min, choose(property, (doublings + 1) << 10), 10));
  }

 private:
  net_fake::Decisions& decisions_;
};

Delay draw_delay(Swarm& swarm, Duration peer_timeout) {
  const Duration longest = peer_timeout / 16;
  const auto bounded = [longest](Duration delay) { return std::min(delay, longest); };
  switch (swarm.choose(Property::delays, 6)) {
    case 0:
      return Delay::constant(bounded(microseconds(100)));
    case 1:
      return Delay::uniform(microseconds(5), bounded(microseconds(20)));
    case 2:
      return Delay::uniform(microseconds(50), bounded(microseconds(200)));
    case 3:
      return Delay::exponential(microseconds(20), bounded(milliseconds(1)) / 22);
    case 4:
      return Delay::exponential(milliseconds(1), bounded(milliseconds(220)) / 22);
    default:
      return Delay::bimodal(microseconds(20), bounded(microseconds(300)),
                            {.min = bounded(milliseconds(2)),
                             .max = bounded(milliseconds(100)),
                             .millionths = 20'000});
  }
}

SchedulingModel draw_scheduling(Swarm& swarm) {
  const auto model = [](Duration longest) {
    const Delay delay = Delay::uniform({}, longest);
    return SchedulingModel{.start = delay, .resume = delay, .timer = delay};
  };
  switch (swarm.choose(Property::scheduling, 4)) {
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

net_fake::Weather draw_weather(Swarm& swarm, const ClusterOptions& options, Duration peer_timeout) {
  net_fake::Weather weather;
  if (options.faults != FaultLevel::none) {
    if (swarm.on(Property::retransmit_on))
      weather.retransmit_millionths = swarm.strength(Property::retransmit, 500, 60'000);
    if (swarm.on(Property::cut_on))
      weather.cut_millionths = swarm.strength(Property::cut, 500, 60'000);
    if (swarm.on(Property::refuse_on))
      weather.refuse_millionths = swarm.strength(Property::refuse, 10'000, 500'000);
    if (swarm.on(Property::silence_on))
      weather.silence_millionths = swarm.strength(Property::silence, 30'000, 500'000);
  }
  if (options.long_partitions) {
    weather.partition_millionths = swarm.strength(Property::long_partition, 3'000, 50'000);
    weather.partition_min = peer_timeout / 8;
    weather.partition_max = peer_timeout * 3;
    weather.partition_gap = peer_timeout;
  } else if (options.faults == FaultLevel::hostile && swarm.on(Property::partition_on)) {
    weather.partition_millionths = swarm.strength(Property::partition, 300, 20'000);
    weather.partition_max = peer_timeout / 5;
    weather.partition_gap = peer_timeout / 10;
  }
  return weather;
}

std::string milliseconds_text(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms",
                std::chrono::duration<double, std::milli>(duration).count());
  return text;
}

std::string percent(uint64_t millionths) {
  char text[32];
  std::snprintf(text, sizeof text, "%llu.%03llu %%",
                static_cast<unsigned long long>(millionths / 10'000),
                static_cast<unsigned long long>(millionths % 10'000 / 10));
  return text;
}

}  // namespace

FaultPlan draw_faults(net_fake::Decisions& decisions, const ClusterOptions& options, size_t workers,
                      Duration peer_timeout) {
  Swarm swarm(decisions);
  FaultPlan plan;
  plan.link = options.network.link;
  if (options.faults != FaultLevel::none) {
    plan.link.delay = draw_delay(swarm, peer_timeout);
    plan.scheduling = draw_scheduling(swarm);
  }
  plan.weather = draw_weather(swarm, options, peer_timeout);
  for (uint64_t i = 0; i < options.crashes; ++i) {
    PlannedCrash crash;
    const Key victim{.kind = DecisionKind::crash_victim, .number = i};
    crash.worker.value = static_cast<uint32_t>(decisions.choose(victim, workers));
    // Early moments are as likely as late ones: within each doubling up to 4,096 events.
    const Key moment{.kind = DecisionKind::crash_moment, .number = i};
    crash.event = in_doublings(1, decisions.choose(moment, uint64_t{12} << 12), 12);
    plan.crashes.push_back(draw_restart(decisions, options.restart, crash, i));
  }
  return plan;
}

PlannedCrash draw_restart(net_fake::Decisions& decisions, Restart restart, PlannedCrash crash,
                          uint64_t number) {
  const Key key{.kind = DecisionKind::restart, .number = number};
  // Back at once is as likely as back when all have noticed: within each doubling from 0.1 ms.
  constexpr uint64_t kDoublings = 14;
  const uint64_t drawn = decisions.choose(key, 2 * kDoublings << 10);
  const uint64_t moment = drawn % (kDoublings << 10);
  crash.restarts = restart == Restart::always || (restart == Restart::drawn && drawn != moment);
  crash.restart_after = microseconds(1) * static_cast<int64_t>(in_doublings(100, moment, 10));
  return crash;
}

std::string FaultPlan::describe(const std::vector<std::string>& names) const {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (weather.cut_millionths > 0) add("resets " + percent(weather.cut_millionths));
  if (weather.retransmit_millionths > 0)
    add("retransmissions " + percent(weather.retransmit_millionths));
  if (weather.refuse_millionths > 0) add("refusals " + percent(weather.refuse_millionths));
  if (weather.silence_millionths > 0) add("unheard losses " + percent(weather.silence_millionths));
  if (weather.partition_millionths > 0)
    add("partitions " + percent(weather.partition_millionths) + " up to " +
        std::to_string(weather.partition_max / milliseconds(1)) + " ms");
  for (const PlannedCrash& crash : crashes)
    add("crash of " + names[crash.worker.value] + " at its event " + std::to_string(crash.event) +
        (crash.restarts ? ", back after " + milliseconds_text(crash.restart_after) : ""));
  return text.empty() ? "none" : text;
}

}  // namespace rehearsal::sim
