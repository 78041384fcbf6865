#include <functional>
#include <limits>
#include <vector>

#include "sim/device/machine.h"
#include "tests/sim/device/devices.h"

// Goal: streams, events and the host are in order exactly where the program says so, and a missing
// wait is told whether or not it did harm in this run.
namespace rehearsal::sim {
namespace {

using torch::Tensor;

constexpr uint64_t kDrawnOrders = 40;

// A program's sum for each seed, and how many of these runs were told to have a problem.
struct Outcome {
  int right = 0, wrong = 0, told = 0;
};

Outcome over_seeds(float expected, const std::function<Tensor()>& program, int devices = 1) {
  Outcome outcome;
  for (uint64_t seed = 0; seed < kDrawnOrders; ++seed) {
    SimulatedDevices simulated({.count = devices, .seed = seed});
    const float sum = program().sum().item<float>();
    (sum == expected ? outcome.right : outcome.wrong) += 1;
    outcome.told += problems_of(simulated).empty() ? 0 : 1;
  }
  return outcome;
}

void expect_always_right(const Outcome& outcome) {
  EXPECT_EQ(outcome.right, kDrawnOrders);
  EXPECT_EQ(outcome.told, 0);
}

// Found in each run, and some of them show the harm.
void expect_found(const Outcome& outcome) {
  EXPECT_EQ(outcome.told, kDrawnOrders);
  EXPECT_GT(outcome.wrong, 0);
}

// x * 2 on the current stream, + 1 on another, back on the host.
Tensor through_two_streams(const std::function<void(c10::Stream, c10::Stream)>& between) {
  const Tensor x = torch::ones({3}).to(sim_device());
  const Tensor twice = x * 2;
  const c10::Stream side = SimulatedDevices::new_stream(0);
  between(current_stream(), side);
  const c10::StreamGuard on_side(side);
  return (twice + 1).cpu();
}

TEST(Streams, AMissingEventIsFoundInEveryRun) {
  expect_found(over_seeds(9, [] { return through_two_streams([](auto, auto) {}); }));
}

TEST(Streams, AnEventMakesEveryOrderRight) {
  expect_always_right(over_seeds(9, [] {
    return through_two_streams([](auto first, auto second) { wait_for(second, first); });
  }));
}

TEST(Streams, AnEventTheWrongWayRoundIsNone) {
  expect_found(over_seeds(9, [] {
    return through_two_streams([](auto first, auto second) { wait_for(first, second); });
  }));
}

TEST(Streams, TheHostMayWaitInstead) {
  expect_always_right(over_seeds(
      9, [] { return through_two_streams([](auto first, auto) { first.synchronize(); }); }));
  expect_always_right(over_seeds(9, [] {
    return through_two_streams([](auto first, auto) {
      c10::Event event(SimulatedDevices::kType);
      event.record(first);
      while (!event.query()) continue;
    });
  }));
}

TEST(Streams, TheReportNamesBothOperationsAndTheWait) {
  SimulatedDevices devices({.seed = 1});
  (void)through_two_streams([](auto, auto) {});
  ASSERT_EQ(devices.problems().size(), 1U);
  EXPECT_EQ(without_lines(devices.problems()[0]),
            "missing wait: aten::add (operation 6, streams_test.cc:N) on stream 33 of sim:0 reads "
            "what aten::mul (operation 4, streams_test.cc:N) on stream 0 of sim:0 writes, and "
            "nothing puts them in order. Missing: an event that stream 0 of sim:0 records after "
            "operation 4, and that stream 33 of sim:0 waits for before operation 6");
}

TEST(Streams, AnEventIsWhatItRecordedLast) {
  const auto program = [](bool again) {
    return [again] {
      Tensor x = torch::ones({3}).to(sim_device());
      c10::Event event(SimulatedDevices::kType);
      event.record(current_stream());
      x.mul_(2);
      if (again) event.record(current_stream());
      const c10::Stream side = SimulatedDevices::new_stream(0);
      event.block(side);
      event.record(side);  // of no use to who has begun to wait
      const c10::StreamGuard on_side(side);
      return (x + 1).cpu();
    };
  };
  expect_always_right(over_seeds(9, program(true)));
  expect_found(over_seeds(9, program(false)));
}

TEST(Streams, WhatWaitsForAStreamKnowsWhatThatWaitedFor) {
  expect_always_right(over_seeds(9, [] {
    const Tensor twice = torch::ones({3}).to(sim_device()) * 2;
    const c10::Stream first = SimulatedDevices::new_stream(0);
    const c10::Stream second = SimulatedDevices::new_stream(0);
    wait_for(first, current_stream());
    wait_for(second, first);
    const c10::StreamGuard on_second(second);
    return (twice + 1).cpu();
  }));
}

TEST(Streams, WritingWhatAnotherStreamReadsIsFound) {
  expect_found(over_seeds(6, [] {
    Tensor x = torch::ones({3}).to(sim_device());
    const c10::Stream side = SimulatedDevices::new_stream(0);
    Tensor twice;
    {
      const c10::StreamGuard on_side(side);
      twice = x * 2;
    }
    x.zero_();
    side.synchronize();
    return twice.cpu();
  }));
}

TEST(Streams, CopiesBetweenDevicesAreInOrderWithBoth) {
  expect_always_right(over_seeds(
      9,
      [] {
        const Tensor twice = torch::ones({3}).to(sim_device(0)) * 2;
        Tensor there = torch::zeros({3}, sim_device(1));
        there.copy_(twice, /*non_blocking=*/true);
        return (there + 1).cpu();
      },
      2));
}

TEST(Streams, ACopyToTheHostIsThereOnceItIsWaitedFor) {
  int early = 0;
  for (uint64_t seed = 0; seed < kDrawnOrders; ++seed) {
    SimulatedDevices devices({.seed = seed});
    const Tensor twice = torch::ones({3}).to(sim_device()) * 2;
    const Tensor on_host = twice.to(torch::kCPU, torch::kFloat, /*non_blocking=*/true);
    early += on_host.isnan().all().item<bool>() ? 1 : 0;
    current_stream().synchronize();
    EXPECT_EQ(on_host.sum().item<float>(), 6);
  }
  EXPECT_GT(early, 0);
  EXPECT_LT(early, kDrawnOrders);
}

TEST(Streams, ACopyFromPinnedMemoryReadsLater) {
  const auto changed_at_once = [](bool pinned) {
    return [pinned] {
      Tensor on_host = torch::ones({3});
      if (pinned) on_host = on_host.pin_memory();
      EXPECT_EQ(on_host.is_pinned(), pinned);
      const Tensor there = on_host.to(sim_device(), torch::kFloat, /*non_blocking=*/true);
      on_host.fill_(5);
      return there;
    };
  };
  expect_always_right(over_seeds(3, changed_at_once(false)));
  EXPECT_GT(over_seeds(3, changed_at_once(true)).wrong, 0);
}

TEST(Streams, ColumnsThatInterleaveAreApart) {
  const auto program = [](int64_t column_of_side) {
    return [column_of_side] {
      const Tensor x = torch::zeros({3, 2}).to(sim_device());
      const c10::Stream side = SimulatedDevices::new_stream(0);
      side.synchronize();
      x.select(1, 0).fill_(1);
      {
        const c10::StreamGuard on_side(side);
        x.select(1, column_of_side).fill_(2);
      }
      side.synchronize();
      current_stream().synchronize();
      return x.cpu();
    };
  };
  expect_always_right(over_seeds(9, program(1)));
  EXPECT_EQ(over_seeds(6, program(0)).told, kDrawnOrders);
}

TEST(Streams, PoolStreamsComeByTurns) {
  SimulatedDevices devices;
  const c10::impl::VirtualGuardImpl guard(SimulatedDevices::kType);
  const c10::Stream first = guard.getStreamFromGlobalPool(sim_device());
  c10::Stream next = first;
  for (int i = 0; i < 32; ++i) {
    EXPECT_NE(guard.getDefaultStream(sim_device()), next);
    next = guard.getStreamFromGlobalPool(sim_device());
  }
  EXPECT_EQ(next, first);
}

// Every order in which streams can go on, by way of `choose`: depth first.
void for_each_order(const std::function<void(const SimulatedDevicesOptions&)>& run) {
  std::vector<std::pair<uint32_t, uint32_t>> choices;  // what was chosen, of how many
  do {
    size_t at = 0;
    run({.choose = [&](const std::string& decision, uint32_t n) {
      if (decision == "eagerness") return 0U;  // streams go on while the host waits
      if (at == choices.size()) choices.emplace_back(0, n);
      EXPECT_EQ(choices[at].second, n) << "a run does not follow from its choices";
      return choices[at++].first;
    }});
    choices.resize(at);
    while (!choices.empty() && choices.back().first + 1 == choices.back().second)
      choices.pop_back();
    if (!choices.empty()) ++choices.back().first;
  } while (!choices.empty());
}

TEST(Streams, AllOrdersCanBeTried) {
  for (const bool waits : {false, true}) {
    int right = 0, wrong = 0;
    for_each_order([&](const SimulatedDevicesOptions& options) {
      SimulatedDevices devices(options);
      const Tensor x = torch::empty({1}, sim_device());
      x.fill_(2);
      const c10::Stream side = SimulatedDevices::new_stream(0);
      if (waits) wait_for(side, current_stream());
      const c10::StreamGuard on_side(side);
      (x.item<float>() == 2 ? right : wrong) += 1;
    });
    EXPECT_EQ(right, 1);  // memory, filled, read
    EXPECT_EQ(wrong, waits ? 0 : 2);
  }
}

TEST(Streams, WhoWatchesSeesEachStepOfThem) {
  SimulatedDevices devices({.choose = [](const std::string&, uint32_t) { return 0u; }});
  using Kind = device::StreamStep::Kind;
  std::vector<std::string> seen;
  devices.machine().watch([&](const device::StreamStep& step) {
    const char* const kind = step.kind == Kind::given     ? "given "
                             : step.kind == Kind::done    ? "done "
                             : step.kind == Kind::went_on ? "went on behind "
                                                          : "awaited ";
    if (step.name == "aten::mul" || step.name == "aten::add")
      seen.push_back(kind + std::string(step.name));
  });
  const Tensor x = torch::ones({3}).to(sim_device());
  const Tensor twice = x * 2;
  const c10::Stream side = SimulatedDevices::new_stream(0);
  wait_for(side, current_stream());
  {
    const c10::StreamGuard on_side(side);
    const Tensor more = twice + 1;
    side.synchronize();
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"given aten::mul", "given aten::add", "done aten::mul",
                                            "went on behind aten::mul", "done aten::add",
                                            "awaited aten::add"}));
  devices.machine().watch(nullptr);
  (void)(x * 3);
  EXPECT_EQ(seen.size(), 6u);
  EXPECT_EQ(problems_of(devices), "");
}

TEST(Streams, WhatTheyHaveStillToDoEndsWithTheProcess) {
  SimulatedDevices devices({.choose = [](const std::string&, uint32_t) { return 0u; }});
  device::Machine& machine = devices.machine();
  const auto used = std::make_shared<int>();
  int steps = 0;
  machine.watch([&](const device::StreamStep&) { ++steps; });
  const Tensor memory = torch::ones({3}).to(sim_device());
  machine.give(machine.stream(0, 1),
               {.name = "it uses memory", .reads = {}, .writes = {}, .run = [used, memory] {}});
  ASSERT_EQ(used.use_count(), 2);
  const int before = std::exchange(steps, 0);
  machine.end();
  EXPECT_GT(before, 0);
  EXPECT_EQ(used.use_count(), 1);
  machine.synchronize_all();
  EXPECT_EQ(steps, 0);
}

}  // namespace
}  // namespace rehearsal::sim
