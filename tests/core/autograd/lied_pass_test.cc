// Passes of which a worker that takes part says what is not true: in the name of their starter, who
// has said nothing of the kind.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/fibers/thread_state.h"
#include "sim/world/cluster_parts.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

using sim::ClusterParts;
using std::chrono::seconds;

// "far" is reached through "near" and "mad" only: its starter never calls it.
constexpr WorkerId kStarter{0};
constexpr WorkerId kNear{1};
constexpr WorkerId kFar{2};
constexpr WorkerId kMadOne{3};

constexpr Instant kAllWait = Instant{} + seconds(10);
constexpr Duration kPause = seconds(20);

// The findings of the starter's main.
struct Found {
  AutogradContextId context;
  std::vector<std::string> errors;  // of passes, each tried until one succeeds
  std::vector<at::Tensor> before,
      after;  // far's and near's gradients: after the lie, and one pass later
};

at::Tensor loss_of(Worker& worker, const AutogradContext& context, const RRef<Layer>& near,
                   const RRef<Layer>& far) {
  const auto mad = worker.remote<Layer>("mad", 4, 3);
  const at::Tensor input = numbers({3, 4}, 99);
  return context.rpc_sync(near, &Layer::forward_through, input, far).sum() +
         context.rpc_sync(mad, &Layer::forward_through, input, far).sum();
}

// `passes` before the lie, and one behind it.
void train(Worker& worker, int passes, Found& found) {
  const auto near = worker.remote<Layer>("near", 4, 1);
  const auto far = worker.remote<Layer>("far", 4, 2);
  const AutogradContext context = worker.autograd_context();
  found.context = context.id();
  const at::Tensor loss = loss_of(worker, context, near, far);
  const auto gradients = [&] {
    return std::vector<at::Tensor>{context.rpc_sync(far, &Layer::gradients).at(0),
                                   context.rpc_sync(near, &Layer::gradients).at(0)};
  };
  for (int i = 0; i < passes; ++i) context.backward({loss}, /*retain_graph=*/true);
  worker.sleep(kPause);
  found.before = gradients();
  for (int tries = 0; tries < 3; ++tries) {
    try {
      context.backward({loss}, /*retain_graph=*/true);
      break;
    } catch (const RpcError& thrown) {
      found.errors.push_back(thrown.error().text);
    }
  }
  found.after = gradients();
}

// Of one pass, in one process.
std::vector<at::Tensor> expected_gradients() {
  Layer near(4, 1);
  Layer far(4, 2);
  Layer mad(4, 3);
  const at::Tensor input = numbers({3, 4}, 99);
  const at::Tensor loss =
      far.forward(near.forward(input)).sum() + far.forward(mad.forward(input)).sum();
  return local_gradients(loss, {far.weight_, near.weight_});
}

// Nobody is blamed: each may have been told by another one.
class Blames final : public Trace {
 public:
  void on_event(const Event& event) override {
    if (event.kind == EventKind::peer_fenced &&
        event.text.find("broke the protocol") != std::string_view::npos)
      blames += std::string(event.text) + "\n";
  }
  std::string blames;
};

using Lie = std::function<Message(const PassName&)>;

Found found_beside(const Lie& lie, WorkerId told, int passes) {
  const fibers::DefaultThreadState state;
  Found found;
  Program program(layer_functions());
  program.worker("starter", [&](Worker& worker) { train(worker, passes, found); });
  for (const std::string name : {"near", "far", "mad"}) program.worker(name, [](Worker&) {});
  Blames fences;
  ClusterParts parts(Seed{1}, program,
                     {.faults = sim::FaultLevel::none, .oracles = false, .traces = {&fences}});
  parts.begin();
  while (parts.step(kAllWait)) {
  }
  PassName name;
  name.id = {found.context, static_cast<uint64_t>(passes) + 1,
             parts.life(kStarter).view().incarnation};
  name.starter = name.context_creator = kStarter;
  sim::Life& mad = parts.life(kMadOne);
  mad.runtime().post([&] { mad.node().say(told, lie(name)); });
  while (parts.step()) {
  }
  for (const WorkerId worker : {kStarter, kNear, kFar}) {
    const auto& result = parts.life(worker).result();
    EXPECT_TRUE(result) << "worker " << worker.value << " does not end";
    if (result && !result->ok()) ADD_FAILURE() << to_string(result->error());
  }
  EXPECT_EQ(fences.blames, "");
  return found;
}

// The worker that was told refuses the pass of this name, unless the liar has no part in the
// context there: near does not hear it at all.
void expect_one_refusal(const Found& found, WorkerId told) {
  const std::vector<std::string> refusal{"'starter' has not begun this backward pass"};
  EXPECT_EQ(found.errors, told == kNear ? std::vector<std::string>() : refusal);
}

void expect_times(const std::vector<at::Tensor>& found, int times) {
  const std::vector<at::Tensor> expected = expected_gradients();
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(found[i].defined(), times > 0) << i;
    if (times > 0) EXPECT_TRUE(at::allclose(found[i], expected[i] * times)) << i;
  }
}

TEST(LiedPass, APassThatItsStarterHasNotBegunBeginsNowhere) {
  // Goal: backward() does not wait for a pass that another one has begun in the starter's name.
  // Method: its check wave before the first pass, said to the starter and to others, who pass it
  // on. The next pass succeeds.
  for (const WorkerId told : {kStarter, kNear, kFar}) {
    SCOPED_TRACE("told is worker " + std::to_string(told.value));
    const Found found = found_beside(
        [](const PassName& name) {
          return Message{PassFinish{name, PassWave::check}};
        },
        told, 0);
    expect_times(found.before, 0);
    expect_one_refusal(found, told);
    expect_times(found.after, 1);
  }
}

TEST(LiedPass, NobodyButTheStarterTakesItsPassBack) {
  // Goal: gradients of passes that have succeeded stay. Method: a next pass of the starter, said by
  // another one, that takes them back; it comes to a worker that the starter calls, and to one
  // that it does not.
  for (const WorkerId told : {kNear, kFar}) {
    SCOPED_TRACE("told is worker " + std::to_string(told.value));
    const Found found = found_beside(
        [](PassName name) {
          name.settled = name.id.epoch;
          name.taken_back = {1, 2};
          return Message{PassFinish{name, PassWave::check}};
        },
        told, 2);
    expect_times(found.before, 2);
    expect_one_refusal(found, told);
    expect_times(found.after, 3);
  }
}

TEST(LiedPass, NobodyButTheStarterSaysThatAPassFailedThatHasEnded) {
  for (const WorkerId told : {kStarter, kNear, kFar}) {
    SCOPED_TRACE("told is worker " + std::to_string(told.value));
    const Found found = found_beside(
        [](PassName name) {
          name.id.epoch = 1;
          return Message{PassFailed{name, {.kind = ErrorKind::autograd, .text = "no"}}};
        },
        told, 1);
    expect_times(found.before, 1);
    EXPECT_TRUE(found.errors.empty()) << found.errors.front();
    expect_times(found.after, 2);
  }
}

}  // namespace
}  // namespace rehearsal::testing
