// A member of gatherings and of process groups that says what is not true: it ends nobody, and
// takes nothing from groups that others have. One of the workers says by hand what a mad one might.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/gather.h"
#include "core/api/parcel.h"
#include "core/api/process_group.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/fibers/thread_state.h"
#include "core/wire/protobuf_codec.h"
#include "net_fake/witness.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::group_liar {
namespace {

using sim::ClusterParts;
using std::chrono::seconds;
using Shares = std::vector<GatherShare>;

constexpr WorkerId kFirst{0};
constexpr WorkerId kSecond{1};
constexpr WorkerId kThird{2};

uint32_t position(const Program& program, const std::string& name) {
  const auto& functions = program.registry().functions();
  const auto found =
      std::find_if(functions.begin(), functions.end(),
                   [&name](const Function& function) { return function.name == name; });
  EXPECT_NE(found, functions.end()) << name;
  return static_cast<uint32_t>(found - functions.begin());
}

template <class Body>
Error thrown_by(Body body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
  return {.kind = ErrorKind::storage, .text = "nothing was thrown"};
}

// The gatherings to which one worker brings its share, by their calls.
class Overheard final : public net_fake::Witness {
 public:
  Overheard(WorkerId from, uint32_t gather) : from_(from), gather_(gather) {}
  void on_sent(sim::LifeId from, sim::LifeId, const Frame& frame, uint64_t attempt) override {
    if (from.worker != from_ || attempt > 0 || frame.body == nullptr) return;
    const Message message = make_protobuf_codec()->decode(*frame.body).value();
    const auto* call = std::get_if<Call>(&message.content);
    if (call != nullptr && call->function == gather_) asked.push_back(call->id);
  }
  void on_arrived(sim::LifeId, sim::LifeId, const Frame&) override {}
  void on_broken(sim::LifeId, sim::LifeId, std::string_view) override {}
  void on_partition(const net_fake::Partition&) override {}
  void on_healed() override {}

  std::vector<CallId> asked;

 private:
  const WorkerId from_;
  const uint32_t gather_;
};

// Gives the answer of a mad first member to the n-th gathering.
using Answers = std::function<Shares(uint64_t n, Incarnation first, Incarnation second)>;

// Runs workers a, which is mad and answers as it is told, and b, whose main is `honest`.
void run_with_mad_first(const Program::Main& honest, const Answers& answers) {
  Program program{FunctionRegistry()};
  program.worker("a", [](Worker& worker) { worker.sleep(seconds(30)); });
  program.worker("b", honest);
  const fibers::DefaultThreadState state;
  ClusterParts parts(Seed{1}, program, {.faults = sim::FaultLevel::none, .oracles = false});
  Overheard overheard(kSecond, position(program, "rehearsal.gather"));
  parts.network().set_witness(&overheard);
  parts.begin();
  sim::Life& mad = parts.life(kFirst);
  std::deque<Message> said;
  while (parts.step(Instant{} + seconds(20)))
    while (said.size() < overheard.asked.size()) {
      Response response{.id = overheard.asked[said.size()]};
      ValueWriter writer(response.value);
      Value<Shares>::write(writer, answers(said.size(), mad.view().incarnation,
                                           parts.life(kSecond).view().incarnation));
      writer.finish();
      said.push_back(Message{std::move(response)});
      mad.runtime().post([&mad, lie = &said.back()] { mad.node().say(kSecond, *lie); });
    }
  parts.crash({.worker = kFirst});
  while (parts.step()) {
  }
  EXPECT_TRUE(parts.life(kSecond).result());
}

TEST(GroupLiar, AGatheringHasAShareOfEachMemberOrFails) {
  // Goal: an answer with too few shares, or too many, is the first member's fault. Method: none,
  // one, three, and at last two of two.
  std::vector<Error> heard;
  std::map<std::string, int64_t> gathered;
  run_with_mad_first(
      [&](Worker& worker) {
        for (int i = 0; i < 3; ++i)
          heard.push_back(thrown_by([&] { (void)worker.all_gather(int64_t{1}); }));
        gathered = worker.all_gather(int64_t{1});
      },
      [](uint64_t n, Incarnation, Incarnation) {
        constexpr std::array<size_t, 4> kCounts = {0, 1, 3, 2};
        return Shares(kCounts.at(n), share_of(int64_t{7}));
      });
  ASSERT_EQ(heard.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(heard[i].kind, ErrorKind::protocol) << to_string(heard[i]);
    EXPECT_EQ(heard[i].worker, "a");
    EXPECT_EQ(heard[i].text, "it has answered a gathering of 2 workers with " +
                                 std::to_string(i == 2 ? 3 : i) + " shares");
  }
  EXPECT_EQ(gathered, (std::map<std::string, int64_t>{{"a", 7}, {"b", 7}}));
}

// As a member introduces itself to a process group.
struct SaidIntroduction {
  uint64_t incarnation = 0;
  GroupName name;
  std::vector<std::string> names = {"a", "b"};
  friend void describe(SaidIntroduction& said, auto&& fields) {
    fields(said.incarnation, said.name, said.names);
  }
};

TEST(GroupLiar, AProcessGroupHasANameOfItsFirstMembersLifeThatNoOtherOneHas) {
  // Goal: a false name is refused where the group is made, and ends neither the worker nor a group
  // that is open. Method: a name that is true, the same again, one of the other's life, and a life
  // that is another's.
  std::vector<Error> heard;
  run_with_mad_first(
      [&](Worker& worker) {
        const ProcessGroup open(worker);
        for (int i = 0; i < 3; ++i)
          heard.push_back(thrown_by([&] { const ProcessGroup refused(worker); }));
      },
      [](uint64_t n, Incarnation first, Incarnation second) {
        const GroupName of_second{second.value, 0};
        const SaidIntroduction says{.incarnation = n == 3 ? second.value : first.value,
                                    .name = n < 2 ? GroupName{first.value, 7} : of_second};
        return Shares{share_of(says), share_of(SaidIntroduction{second.value, of_second})};
      });
  ASSERT_EQ(heard.size(), 3u);
  for (const Error& error : heard) EXPECT_EQ(error.worker, "a") << to_string(error);
  EXPECT_EQ(heard[0].kind, ErrorKind::protocol);
  EXPECT_EQ(heard[0].text, "it has named a process group like one that is open");
  EXPECT_EQ(heard[1].kind, ErrorKind::protocol);
  EXPECT_EQ(heard[1].text, "it has named a process group by a life that is not its own");
  EXPECT_EQ(heard[2].kind, ErrorKind::peer_lost);
  EXPECT_NE(heard[2].text.find("has come back in a new life"), std::string::npos) << heard[2].text;
}

// As a member tells of a failure.
struct SaidFailure {
  uint8_t kind = static_cast<uint8_t>(ErrorKind::cancelled);
  std::string text = "no";
  std::string worker = "c";
  friend void describe(SaidFailure& said, auto&& fields) {
    fields(said.kind, said.text, said.worker);
  }
};

TEST(GroupLiar, EndsOfGroupsThatThereAreNotPushNoTrueEndOut) {
  // Goal: a late parcel for a group that was let go is refused at once, whatever another worker
  // tells. Method: more ends than are remembered, of groups that nobody has, before the parcel.
  std::optional<Error> heard;
  Duration waited{};
  Program program{FunctionRegistry()};
  program.worker("a", [](Worker& worker) {
    {
      const ProcessGroup group(worker, {"a", "b"});
      group.barrier();
    }
    worker.sleep(seconds(60));
  });
  program.worker("b", [&](Worker& worker) {
    const ProcessGroup group(worker, {"a", "b"}, {.timeout = seconds(20)});
    group.barrier();
    worker.sleep(seconds(10));
    const Instant begin = worker.now();
    heard = thrown_by([&] { group.send(at::ones({1}), 0); });
    waited = worker.now() - begin;
  });
  program.worker("c", [](Worker& worker) { worker.sleep(seconds(60)); });
  const fibers::DefaultThreadState state;
  ClusterParts parts(Seed{1}, program, {.faults = sim::FaultLevel::none, .oracles = false});
  parts.begin();
  while (parts.step(Instant{} + seconds(5))) {
  }
  sim::Life& mad = parts.life(kThird);
  const Incarnation of_mad = mad.view().incarnation;
  const uint32_t abandon = position(program, "rehearsal.abandon");
  mad.runtime().post([&] {
    for (uint64_t n = 0; n < 1200; ++n) {
      Call call{.id = CallId{CausalId{of_mad, {7, 7}, n}}};
      call.function = abandon;
      ValueWriter writer(call.arguments);
      Value<GroupName>::write(writer, {of_mad.value, n});
      Value<SaidFailure>::write(writer, {});
      mad.node().say(kFirst, Message{std::move(call)});
    }
  });
  while (parts.step(Instant{} + seconds(50))) {
  }
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->kind, ErrorKind::cancelled) << to_string(*heard);
  EXPECT_NE(heard->text.find("worker 'a' has let go of the process group"), std::string::npos)
      << heard->text;
  EXPECT_LT(waited, seconds(15));
  parts.crash({.worker = kThird});
  while (parts.step()) {
  }
}

// Sees the end: that c is told to go, what it asks of others after that, and what it says of a
// call.
class EndOfThird final : public Trace {
 public:
  void on_event(const Event& event) override {
    const bool of_third = event.worker == kThird;
    if (event.kind == EventKind::frame_sent && event.peer == kThird)
      told_to_go |= event.message_type == Message{Leave{}}.type();
    if (event.kind == EventKind::frame_sent && of_third)
      fork_requests += event.message_type == Message{ForkRequest{}}.type() ? 1 : 0;
    if (event.kind == EventKind::mark && of_third)
      refused += event.text == "a call came when all had ended" ? 1 : 0;
  }
  bool told_to_go = false;
  int fork_requests = 0;
  int refused = 0;
};

// a tells c to go, and then calls it with a reference to a value of b.
void run_with_late_call(uint64_t seed, EndOfThird& end) {
  Program program{FunctionRegistry()};
  for (const char* const name : {"a", "b", "c"}) program.worker(name, [](Worker&) {});
  const fibers::DefaultThreadState state;
  ClusterParts parts(Seed{seed}, program,
                     {.faults = sim::FaultLevel::none, .oracles = false, .traces = {&end}});
  parts.begin();
  while (!end.told_to_go && parts.step()) {
  }
  sim::Life& mad = parts.life(kFirst);
  const Incarnation of_mad = mad.view().incarnation;
  Call call{.id = CallId{CausalId{of_mad, {7, 7}, 1}}};
  call.function = position(program, "rehearsal.abandon");
  const RRefId value{{of_mad, {8, 8}, 1}, kSecond, parts.life(kSecond).view().incarnation, 0};
  call.arguments.forks.push_back({value, ForkId{CausalId{of_mad, {9, 9}, 1}}});
  mad.runtime().post([&] { mad.node().say(kThird, Message{std::move(call)}); });
  while (parts.step()) {
  }
}

TEST(GroupLiar, ACallThatComesWhenAllHaveEndedIsNotServed) {
  // Goal: who goes asks nobody on behalf of another, and is not held by those who have gone.
  // Method: seeds by which c has gone, or still goes, when the call comes.
  int refused = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    EndOfThird end;
    run_with_late_call(seed, end);
    EXPECT_TRUE(end.told_to_go) << seed;
    EXPECT_EQ(end.fork_requests, 0) << seed;
    refused += end.refused;
  }
  EXPECT_GT(refused, 0);
}

TEST(GroupLiar, ATensorThatRequiresGradientsIsTakenAsOneThatDoesNot) {
  // Goal: what a member gives has no part in an autograd graph, whatever it says. Method: b, whose
  // program does nothing with the group, says by hand what it would send, for all numbers of a
  // young one.
  at::Tensor sum = at::ones({2});
  std::optional<Error> heard;
  Program program(FunctionRegistry{});
  program.worker("a", [&](Worker& worker) {
    const ProcessGroup group(worker, {"a", "b"}, {.timeout = seconds(20)});
    heard = thrown_by([&] { group.reduce(sum, 0); });
  });
  program.worker("b", [](Worker& worker) {
    const ProcessGroup group(worker, {"a", "b"}, {.timeout = seconds(20)});
    worker.sleep(seconds(30));
  });
  const fibers::DefaultThreadState state;
  ClusterParts parts(Seed{1}, program, {.faults = sim::FaultLevel::none, .oracles = false});
  parts.begin();
  while (parts.step(Instant{} + seconds(5))) {
  }
  const Incarnation of_a = parts.life(kFirst).view().incarnation;
  sim::Life& mad = parts.life(kSecond);
  const Incarnation of_b = mad.view().incarnation;
  const uint32_t deliver = position(program, "rehearsal.deliver");
  mad.runtime().post([&] {
    for (uint64_t n = 0; n < 64; ++n) {
      Call call{.id = CallId{CausalId{of_b, {7, 7}, n}}};
      call.function = deliver;
      ValueWriter writer(call.arguments);
      Value<Parcel>::write(writer, {.group = {of_a.value, n / 16},
                                    .slot = {false, n / 4 % 4, n % 4, 1},
                                    .operation = "reduce(sum) with root 'a' of Float[2]",
                                    .tensors = {at::ones({2}).requires_grad_()}});
      writer.finish();
      mad.node().say(kFirst, Message{std::move(call)});
    }
  });
  while (parts.step()) {
  }
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->text, "nothing was thrown") << to_string(*heard);
  EXPECT_TRUE(at::equal(sum, at::full({2}, 2)));
}

}  // namespace
}  // namespace rehearsal::group_liar
