// Goal: a run on simulated devices is told with what each stream did, when, and behind which other.
// Method: entries made by hand, and a run of two workers with devices.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/explain/html_page.h"
#include "sim/explain/perfetto_trace.h"
#include "sim/explain/story.h"
#include "tests/sim/explain/entries.h"

namespace rehearsal::sim::device_steps_test {
namespace {

using Step = StreamNote::Step;

Entry step(Step step, uint64_t stream, uint64_t operation, const std::string& name = "aten::add") {
  return {.kind = EntryKind::device,
          .worker = 0,
          .number = operation,
          .text = name,
          .stream = StreamNote{.step = step, .device = 1, .stream = stream}};
}

// Stream 2 goes on behind what stream 1 was given; the host waits for it, between other things.
Chronicle two_streams() {
  HandMade made({"ps", "trainer"});
  made.event(EventKind::timer, 0);
  made.add(step(Step::given, 1, 7)).add(step(Step::given, 2, 8, "aten::mul"));
  made.event(EventKind::timer, 0);
  made.add(step(Step::done, 1, 7)).add(step(Step::went_on, 2, 7));
  made.add(step(Step::done, 2, 8, "aten::mul")).add(step(Step::awaited, 2, 8, "aten::mul"));
  made.event(EventKind::timer, 0);
  return chronicle_of(made.history);
}

TEST(DeviceSteps, AStreamHasCausesOfItsOwn) {
  const Chronicle chronicle = two_streams();
  const auto causes = [&](size_t moment) { return chronicle.moments.at(moment).causes; };
  using Causes = std::vector<size_t>;
  ASSERT_EQ(chronicle.moments.size(), 9u);
  EXPECT_EQ(causes(1), (Causes{0}));
  EXPECT_EQ(causes(2), (Causes{1}));
  EXPECT_EQ(causes(3), (Causes{2}));
  EXPECT_EQ(causes(4), (Causes{1}));     // It was given to the stream.
  EXPECT_EQ(causes(5), (Causes{4}));     // Stream 1 has done it.
  EXPECT_EQ(causes(6), (Causes{5, 2}));  // Stream 2 went on, and it was given.
  EXPECT_EQ(causes(7), (Causes{3, 6}));  // The host waited.
  EXPECT_EQ(causes(8), (Causes{7}));
}

TEST(DeviceSteps, AreSentences) {
  const Chronicle chronicle = two_streams();
  const auto text = [&](size_t moment) { return text_of(chronicle, chronicle.moments[moment]); };
  EXPECT_EQ(text(1), "gives aten::add (operation 7) to stream 1 of sim:1");
  EXPECT_EQ(text(4), "stream 1 of sim:1 has done aten::add (operation 7)");
  EXPECT_EQ(text(5), "stream 2 of sim:1 goes on behind aten::add (operation 7)");
  EXPECT_EQ(text(7), "has waited for aten::mul (operation 8) on stream 2 of sim:1");
  EXPECT_EQ(name_of(chronicle.moments[4]), "device_done");
}

TEST(DeviceSteps, TheStoryHasThoseThatTheFailureNames) {
  const Chronicle chronicle = two_streams();
  const std::string failure = "device waits: 'ps': aten::add (operation 7, x.cc:3) and others";
  const std::vector<double> weights = weigh(chronicle, {.failure = failure});
  for (const size_t named : {1, 4, 5}) EXPECT_GT(weights[named], 100) << named;
  for (const size_t other : {2, 6, 7}) EXPECT_LT(weights[other], 1) << other;
  const std::vector<double> of_another =
      weigh(chronicle, {.failure = "device waits: 'trainer': aten::add (operation 7, x.cc:3)"});
  EXPECT_LT(of_another[1], 1);
}

TEST(DeviceSteps, HaveThreadsOfTheirOwnInATrace) {
  const auto json = nlohmann::json::parse(perfetto_trace(two_streams(), {}));
  std::map<std::string, uint64_t> threads;
  for (const auto& event : json.at("traceEvents"))
    if (event.at("name") == "thread_name" && event.at("pid") == 2)
      threads[event.at("args").at("name")] = event.at("tid");
  ASSERT_TRUE(threads.contains("stream 1 of sim:1") && threads.contains("stream 2 of sim:1"));
  uint64_t on_second = 0;
  for (const auto& event : json.at("traceEvents"))
    on_second +=
        event.value("cat", "") == "device" && event.at("tid") == threads["stream 2 of sim:1"];
  EXPECT_EQ(on_second, 2u);
}

at::Tensor twice(const at::Tensor& tensor) { return tensor * 2; }

TEST(DeviceSteps, OfARunAreInItsHistory) {
  FunctionRegistry registry;
  registry.function("twice", &twice);
  Program program(std::move(registry));
  program
      .worker("a",
              [](Worker& worker) {
                const at::Tensor ones = at::ones({3}).to(worker.device(0));
                EXPECT_EQ(worker.rpc_sync("b", &twice, ones).sum().item<float>(), 6);
              })
      .device_map("b", {{0, 1}})
      .worker("b");
  History history;
  ClusterOptions options{.devices = 2};
  options.history = &history;
  Cluster(Seed{3}, program, options).run();
  const Chronicle chronicle = chronicle_of(history);
  // By operation of a worker: what happened to it, in this order.
  std::map<std::pair<uint32_t, uint64_t>, std::vector<Step>> steps;
  std::set<std::string> names;
  for (const Moment& moment : chronicle.moments) {
    if (moment.entry.kind != EntryKind::device) continue;
    names.insert(moment.entry.text);
    const Step step = moment.entry.stream->step;
    if (step == Step::given || step == Step::done)
      steps[{moment.entry.worker, moment.entry.number}].push_back(step);
  }
  EXPECT_TRUE(names.contains("aten::mul"));
  for (const auto& [operation, of_one] : steps) {
    EXPECT_EQ(of_one.front(), Step::given);
    EXPECT_LE(of_one.size(), 2u);
  }
  const bool has_places = std::ranges::any_of(chronicle.moments, [](const Moment& moment) {
    return moment.entry.kind == EntryKind::device && !moment.entry.stack.empty();
  });
  EXPECT_TRUE(has_places);
  const std::string page = html_page(chronicle, {.title = "twice"});
  EXPECT_NE(page.find("of sim:1"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal::sim::device_steps_test
