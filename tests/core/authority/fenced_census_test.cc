// Tables that grow by what a peer says end where they should, and hold nothing of a peer that was
// fenced. One of three workers fills each of them at another one; the two honest ones go on.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/gather_share.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/fibers/thread_state.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal {
namespace {

using sim::ClusterParts;

constexpr WorkerId kVictim{0};
constexpr WorkerId kOther{1};
constexpr WorkerId kMad{2};
constexpr uint64_t kLimit = 8;

constexpr Instant kFilled = Instant{} + std::chrono::seconds(5);
constexpr Instant kLooked = Instant{} + std::chrono::seconds(8);
constexpr Duration kWork = std::chrono::seconds(10);

class Counter {
 public:
  explicit Counter(int64_t start) : value_(start) {}
  int64_t add(int64_t more) { return value_ += more; }

 private:
  int64_t value_;
};

int64_t twice(int64_t number) { return 2 * number; }
at::Tensor parameter() { return at::ones({1}).requires_grad_(); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("twice", &twice);
  registry.function("parameter", &parameter);
  registry.type<Counter>("Counter").constructor<int64_t>().method("add", &Counter::add);
  return registry;
}

// The honest two work with each other when the third has said what it says.
Program program() {
  Program program(functions());
  const auto work = [](Worker& worker, const std::string& other) {
    worker.sleep(kWork);
    if (worker.rpc_sync(other, &twice, 21) != 42) throw std::logic_error("a call");
    const RRef<Counter> counter = worker.remote<Counter>(other, int64_t{1});
    if (worker.rpc_sync(counter, &Counter::add, 2) != 3) throw std::logic_error("a method");
    worker.barrier({"a", "b"});
  };
  program.worker("a", [work](Worker& worker) { work(worker, "b"); });
  program.worker("b", [work](Worker& worker) { work(worker, "a"); });
  program.worker("c", [](Worker& worker) { worker.sleep(kWork); });
  return program;
}

// Why the victim has fenced the mad worker, and whether the honest ones have parted.
class Partings final : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind != EventKind::peer_fenced || event.worker == kMad) return;
    const std::string text(event.text);
    if (event.peer == kMad && event.worker == kVictim)
      why += text + "\n";
    else if (event.peer != kMad && text.find("has ended: ") == std::string::npos)
      parted += text;
  }
  std::string why;
  std::string parted;
};

// The lives as they are in each run: their incarnations follow from the seed.
struct Cast {
  Incarnation victim, other, mad;
  uint32_t twice = 0, parameter = 0, counter = 0, gather = 0;

  [[nodiscard]] CausalId id(uint64_t number) const { return {mad, {7, 7}, number}; }
  [[nodiscard]] Call call(uint64_t number) const {
    Call call{.id = CallId{id(number)}};
    call.function = twice;
    ValueWriter(call.arguments).integer(21);
    return call;
  }
  // A value of the victim, to be created by `creator`.
  [[nodiscard]] RRefId value(Incarnation creator, uint64_t counter) const {
    return {{creator, {8, 8}, counter}, kVictim, victim, counter};
  }
  [[nodiscard]] Message creation(uint64_t number, uint64_t counted) const {
    Call call = this->call(number);
    call.function = counter;
    call.created = value(mad, counted);
    call.created_fork = ForkId{{mad, {9, 9}, number}};
    return Message{call};
  }
};

struct Flood {
  std::string field;  // that the victim names when it fences the flood's maker; empty: it does not
  std::function<Message(const Cast&, uint64_t)> message;  // the n-th
  uint64_t PeerPeaks::*peak;
  uint64_t most = kLimit;  // of that
};

Message call_in_context(const Cast& cast, uint64_t n, Incarnation creator, WorkerId worker) {
  Call call = cast.call(n);
  call.context = ContextName{AutogradContextId{{creator, {5, 5}, n}}, worker};
  return Message{call};
}

Message share_in_gathering(const Cast& cast, uint64_t n) {
  Call call = cast.call(n);
  call.function = cast.gather;
  call.arguments = {};
  ValueWriter writer(call.arguments);
  Value<GatherRound>::write(writer, {.members = {kVictim.value, kMad.value}, .number = n});
  Value<GatherShare>::write(writer, {});
  return Message{call};
}

PassName pass_by_the_mad(const Cast& cast, uint64_t epoch) {
  PassName pass;
  pass.id = {AutogradContextId{{cast.mad, {5, 5}, 0}}, epoch, cast.mad};
  pass.starter = pass.context_creator = kMad;
  return pass;
}

// The first names the context in which the passes are.
Message failed_pass(const Cast& cast, uint64_t n) {
  if (n == 0) return call_in_context(cast, 0, cast.mad, kMad);
  return Message{PassFailed{.pass = pass_by_the_mad(cast, n),
                            .error = {.kind = ErrorKind::autograd, .text = "no"}}};
}

Message begun_pass(const Cast& cast, uint64_t n) {
  if (n == 0) return call_in_context(cast, 0, cast.mad, kMad);
  return Message{PassFinish{pass_by_the_mad(cast, n), PassWave::check}};
}

// Each pass begins and fails: what is left of it is remembered, or not.
Message begun_and_failed_pass(const Cast& cast, uint64_t n) {
  if (n % 2 == 1) return begun_pass(cast, (n + 1) / 2);
  if (n == 0) return begun_pass(cast, 0);
  return Message{PassFailed{.pass = pass_by_the_mad(cast, n / 2),
                            .error = {.kind = ErrorKind::autograd, .text = "no"}}};
}

// A result that requires gradients, in one context.
Message recorded_call(const Cast& cast, uint64_t n) {
  Call call = cast.call(n);
  call.function = cast.parameter;
  call.arguments = {};
  call.context = ContextName{AutogradContextId{{cast.mad, {5, 5}, 0}}, kMad};
  return Message{call};
}

Message use_of(const Cast& cast, uint64_t n, Incarnation creator) {
  Call call = cast.call(n);
  call.kind = CallKind::await;
  call.arguments = {};
  call.target = cast.value(creator, 1000 + n);
  return Message{call};
}

Message given_fork(const Cast& cast, uint64_t n) {
  Call call = cast.call(n);
  call.arguments.forks.push_back(
      {{{cast.mad, {8, 9}, n}, kOther, cast.other, 1000 + n}, ForkId{{cast.mad, {6, 6}, n}}});
  return Message{call};
}

const std::vector<std::pair<std::string, Flood>>& floods() {
  static const std::vector<std::pair<std::string, Flood>> all = {
      {"Contexts",
       {"Call.context",
        [](const Cast& cast, uint64_t n) { return call_in_context(cast, n, cast.mad, kMad); },
        &PeerPeaks::contexts}},
      {"ContextsOfOthers",
       {"",
        [](const Cast& cast, uint64_t n) { return call_in_context(cast, n, cast.other, kOther); },
        &PeerPeaks::contexts}},
      {"Passes", {"PassFinish.pass", &begun_pass, &PeerPeaks::passes}},
      {"FailedPasses", {"PassFailed.pass", &failed_pass, &PeerPeaks::failed_passes}},
      {"FailedPassesThatHadBegun", {"", &begun_and_failed_pass, &PeerPeaks::failed_passes}},
      {"RecordedResults", {"Call.context", &recorded_call, &PeerPeaks::sends}},
      {"Creations",
       {"Call.created", [](const Cast& cast, uint64_t n) { return cast.creation(n, n); },
        &PeerPeaks::references}},
      {"CreationsWithGaps",
       {"Call.created", [](const Cast& cast, uint64_t n) { return cast.creation(n, 2 * n + 1); },
        &PeerPeaks::gaps}},
      {"Forks",
       {"",
        [](const Cast& cast, uint64_t n) {
          if (n == 0) return cast.creation(0, 0);
          return Message{ForkRequest{cast.value(cast.mad, 0), ForkId{{cast.mad, {4, 4}, n}}}};
        },
        &PeerPeaks::references}},
      {"ForksGiven", {"Payload.forks", &given_fork, &PeerPeaks::references}},
      {"ForksOfValuesToCome",
       {"ForkRequest.rref",
        [](const Cast& cast, uint64_t n) {
          return Message{ForkRequest{cast.value(cast.mad, 1000 + n), ForkId{cast.id(n)}}};
        },
        &PeerPeaks::awaited_values}},
      {"UsesOfValuesToCome",
       {"Call.target", [](const Cast& cast, uint64_t n) { return use_of(cast, n, cast.mad); },
        &PeerPeaks::awaited_values}},
      {"UsesOfValuesThatAnotherOneIsToCreate",
       {"", [](const Cast& cast, uint64_t n) { return use_of(cast, n, cast.other); },
        &PeerPeaks::awaited_values}},
      {"Gatherings", {"Call.arguments", &share_in_gathering, &PeerPeaks::gatherings}},
  };
  return all;
}

uint32_t position(const Program& program, const std::function<bool(const Function&)>& is_it) {
  const auto& functions = program.registry().functions();
  return static_cast<uint32_t>(std::find_if(functions.begin(), functions.end(), is_it) -
                               functions.begin());
}
uint32_t position(const Program& program, const std::string& name) {
  return position(program, [&name](const Function& function) { return function.name == name; });
}

// Every number but those of frames and timers: what heartbeats and sleeps change.
std::vector<uint64_t> tables_of(const NodeCensus& census) {
  return {
      census.pending_calls,    census.executions,       census.waiting,       census.owners,
      census.shared_owners,    census.owner_forks,      census.owner_handles, census.users,
      census.pending_users,    census.pending_children, census.published,     census.contexts,
      census.send_functions,   census.passes,           census.lookups,       census.gatherings,
      census.cancelled_makers, census.given_up_calls,   census.early_cancels, census.awaited_values,
      census.late_releases,    census.tallied};
}

class FencedCensus : public ::testing::TestWithParam<size_t> {
 protected:
  void run(const Flood& flood) {
    const fibers::DefaultThreadState state;
    const Program cast_program = program();
    Partings fences;
    ClusterParts parts(Seed{1}, cast_program,
                       {.faults = sim::FaultLevel::none,
                        .adjust_node =
                            [](NodeOptions& node) {
                              node.limits = {.gaps = kLimit,
                                             .contexts = kLimit,
                                             .passes = kLimit,
                                             .failed_passes = kLimit,
                                             .sends = kLimit,
                                             .references = kLimit,
                                             .awaited_values = kLimit,
                                             .early_cancels = kLimit,
                                             .gatherings = kLimit};
                            },
                        .oracles = false,
                        .traces = {&fences}});
    parts.begin();
    while (parts.step(kFilled)) {
    }
    sim::Life& victim = parts.life(kVictim);
    sim::Life& mad = parts.life(kMad);
    const Cast cast{.victim = victim.view().incarnation,
                    .other = parts.life(kOther).view().incarnation,
                    .mad = mad.view().incarnation,
                    .twice = position(cast_program, "twice"),
                    .parameter = position(cast_program, "parameter"),
                    .counter = position(cast_program,
                                        [](const Function& function) {
                                          return function.is_constructor &&
                                                 function.object_type == typeid(Counter);
                                        }),
                    .gather = position(cast_program, "rehearsal.gather")};
    const auto before = tables_of(victim.node().census());
    mad.runtime().post([&] {
      for (uint64_t n = 0; n < 5 * kLimit; ++n) mad.node().say(kVictim, flood.message(cast, n));
    });
    while (parts.step(kLooked)) {
    }
    EXPECT_EQ(victim.node().peaks().*flood.peak, flood.most);
    if (flood.field.empty())
      EXPECT_EQ(fences.why, "");
    else
      EXPECT_NE(fences.why.find("'c' broke the protocol: " + flood.field + " "), std::string::npos)
          << fences.why;
    // The other one, which may have been told of by it, learns of its end.
    parts.crash({.worker = kMad});
    for (sim::Life* const life : {&victim, &parts.life(kOther)})
      life->runtime().post([life] { life->node().give_up(kMad); });
    while (parts.step(kLooked + std::chrono::milliseconds(500))) {
    }
    EXPECT_EQ(tables_of(victim.node().census()), before);
    while (parts.step()) {
    }
    EXPECT_EQ(fences.parted, "");
    for (const WorkerId worker : {kVictim, kOther}) {
      const auto& result = parts.life(worker).result();
      ASSERT_TRUE(result);
      if (!result->ok()) EXPECT_EQ(result->error().worker, "c") << to_string(result->error());
    }
  }
};

TEST_P(FencedCensus, ATableEndsAtItsLimitAndIsFreeOfItsMakerOnceThatIsFenced) {
  run(floods()[GetParam()].second);
}

INSTANTIATE_TEST_SUITE_P(Floods, FencedCensus, ::testing::Range<size_t>(0, floods().size()),
                         [](const auto& info) { return floods()[info.param].first; });

}  // namespace
}  // namespace rehearsal
