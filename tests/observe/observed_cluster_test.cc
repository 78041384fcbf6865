// A simulated cluster whose metrics and spans are what the program did.
#include <gtest/gtest.h>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "observe/metrics.h"
#include "observe/metrics_text.h"
#include "observe/spans.h"
#include "sim/cluster.h"

namespace rehearsal::observe {
namespace {

using std::chrono::milliseconds;

int64_t add(int64_t one, int64_t other) { return one + other; }
int64_t fail() { throw std::runtime_error("on purpose"); }
int64_t ask_back(CallContext& context) {
  return context.rpc_sync(context.caller_info(), &add, int64_t{1}, int64_t{2});
}

struct Counter {
  explicit Counter(int64_t start) : total(start) {}
  int64_t add(int64_t amount) { return total += amount; }
  int64_t total;
};

void trainer(Worker& worker) {
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(worker.rpc_sync("ps", &add, i, i), 2 * i);
  EXPECT_THROW(worker.rpc_async("ps", &fail).wait(), RpcError);
  EXPECT_EQ(worker.rpc_sync("ps", &ask_back), 3);
  const RRef<Counter> counter = worker.remote<Counter>("ps", int64_t{40});
  EXPECT_EQ(counter.rpc_sync(&Counter::add, int64_t{2}), 42);
}

Program program() {
  FunctionRegistry registry;
  registry.function("add", &add).function("fail", &fail).function("ask_back", &ask_back);
  registry.type<Counter>("Counter").constructor<int64_t>().method("add", &Counter::add);
  Program made(registry);
  made.worker("ps", [](Worker&) {}).worker("trainer", &trainer);
  return made;
}

// The constructor's name has its parameters' types in it.
std::string constructor_of(const MetricsSnapshot::Functions& functions) {
  return functions.lower_bound("Counter(")->first;
}

constexpr WorkerId kPs{0};
constexpr WorkerId kTrainer{1};

TEST(ObservedCluster, ItsMetricsAreWhatTheProgramDid) {
  // Goal: exact counts at both ends, errors and nested calls included. Method: no faults; what one
  // worker sent is what the other received.
  const Program told = program();
  Metrics ps(told.names(), kPs);
  Metrics client(told.names(), kTrainer);
  sim::Cluster cluster(Seed{1}, told, {.faults = sim::FaultLevel::none, .traces = {&ps, &client}});
  cluster.run();
  const MetricsSnapshot at_ps = ps.snapshot(cluster.now());
  const MetricsSnapshot at_client = client.snapshot(cluster.now());

  const CallCounts added = at_client.made.at("add").at(kPs.value);
  EXPECT_EQ(added.begun, 3u);
  EXPECT_EQ(added.ended, 3u);
  EXPECT_TRUE(added.errors.empty());
  EXPECT_EQ(at_ps.made.at("add").at(kTrainer.value).ended, 1u);  // The nested call.
  EXPECT_EQ(at_ps.served.at("add").at(kTrainer.value).ended, 3u);
  EXPECT_EQ(at_client.served.at("add").at(kPs.value).ended, 1u);

  const std::map<ErrorKind, uint64_t> one_failure = {{ErrorKind::remote_exception, 1}};
  EXPECT_EQ(at_client.made.at("fail").at(kPs.value).errors, one_failure);
  EXPECT_EQ(at_client.made.at("fail").at(kPs.value).by_form.at(CallForm::rpc_async), 1u);
  EXPECT_EQ(at_ps.served.at("fail").at(kTrainer.value).errors, one_failure);

  const std::string constructor = constructor_of(at_client.made);
  const auto creation = at_client.made.at(constructor).at(kPs.value);
  EXPECT_EQ(creation.by_form.at(CallForm::remote), 1u);
  EXPECT_EQ(at_ps.served.at(constructor).at(kTrainer.value).ended, 1u);

  EXPECT_EQ(at_client.peers.at(0).messages_sent, at_ps.peers.at(1).messages_received);
  EXPECT_EQ(at_client.peers.at(0).bytes_sent, at_ps.peers.at(1).bytes_received);
  EXPECT_EQ(at_client.peers.at(0).bytes_received, at_ps.peers.at(1).bytes_sent);
  EXPECT_EQ(at_client.peers.at(0).messages_resent, 0u);
  EXPECT_GT(at_client.peers.at(0).bytes_sent, 0u);

  for (const MetricsSnapshot& seen : {at_ps, at_client}) {
    EXPECT_EQ(seen.unanswered + seen.waiting + seen.running, 0u);
    EXPECT_EQ(seen.oldest_waiting, Duration(0));
  }
  EXPECT_EQ(at_client.made_times.at("add").total.count(), 3u);
  EXPECT_GE(at_client.made_times.at("add").total.sum(), at_ps.served_times.at("add").total.sum());
}

TEST(ObservedCluster, TheSameSeedGivesTheSameText) {
  // Goal: nothing of the text depends on the machine. Method: two hostile runs of one seed.
  const Program told = program();
  const auto text = [&told] {
    Metrics client(told.names(), kTrainer);
    sim::Cluster cluster(Seed{5}, told, {.faults = sim::FaultLevel::hostile, .traces = {&client}});
    cluster.run();
    return metrics_text(client.snapshot(cluster.now()));
  };
  EXPECT_EQ(text(), text());
}

TEST(ObservedCluster, ResendsAreCounted) {
  // Goal: what is sent again after a lost link. Method: links that break often, until some run had
  // a frame under way; each copy that arrived twice was dropped.
  const Program told = program();
  uint64_t resent = 0;
  uint64_t links = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Metrics client(told.names(), kTrainer);
    sim::Cluster cluster(Seed{seed}, told, {.faults = sim::FaultLevel::none, .traces = {&client}});
    for (int i = 1; i <= 60; ++i)
      cluster.at(milliseconds(3 * i), [&] { cluster.network().reset("ps", "trainer"); });
    cluster.run();
    const PeerCounts seen = client.snapshot(cluster.now()).peers.at(0);
    resent += seen.messages_resent;
    links += seen.links_up;
    EXPECT_EQ(seen.messages_resent == 0, seen.bytes_resent == 0);
  }
  EXPECT_GT(links, 20u);
  EXPECT_GT(resent, 0u);
}

TEST(ObservedCluster, SpansOfANestedCallLieInTheirCall) {
  // Goal: one file tells where the time went. Method: the spans of the whole cluster.
  const Program told = program();
  Spans spans;
  sim::Cluster cluster(Seed{1}, told, {.faults = sim::FaultLevel::none, .traces = {&spans}});
  cluster.run();
  std::map<std::string, const Span*> made;
  std::map<CausalId, const Span*> served;
  for (const Span& span : spans.ended())
    if (span.served)
      served[span.call] = &span;
    else
      made[span_name(span, told.names())] = &span;
  const Span& outer = *made.at("rpc_sync#ask_back(trainer -> ps)");
  const Span& asked = *served.at(outer.call);
  const Span& inner = *made.at("rpc_sync#add(ps -> trainer)");
  const Span& added = *served.at(inner.call);
  const std::vector<Instant> order = {outer.begin, asked.begin, inner.begin, added.begin,
                                      added.end,   inner.end,   asked.end,   outer.end};
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  // A call made by a function has the function's path.
  EXPECT_EQ(inner.call.path, outer.call.execution_path());
  EXPECT_EQ(made.at("rpc_async#fail(trainer -> ps)")->error, ErrorKind::remote_exception);
  EXPECT_TRUE(made.lower_bound("rpc_remote#Counter(")->first.ends_with("(trainer -> ps)"));
}

}  // namespace
}  // namespace rehearsal::observe
