#include "core/fibers/stack_pool.h"
#include "sim/decisions/keyed_decisions.h"
#include "sim/world/sim_runtime.h"
#include "tests/conformance/code_wake_suite.h"
#include "tests/conformance/dying_suite.h"

namespace rehearsal::conformance {
namespace {

using sim::KeyedDecisions;
using sim::SimRuntime;

// kJitter: ready work waits for a drawn time, as in a run with faults.
template <bool kJitter>
class SimRuntimeWorld {
 public:
  static constexpr bool kKills = true;

  SimRuntimeWorld() : decisions_(Seed{7}, {}), runtime_(prepared(), {WorkerId{0}, 0}) {}
  ~SimRuntimeWorld() { runtime_.kill(); }

  Runtime& runtime() { return runtime_; }
  const Executions& executions() { return runtime_; }
  bool advance_until(const std::function<bool()>& holds) {
    while (!holds()) {
      const auto next = world_.queue.peek();
      if (!next) return false;
      world_.queue.take(*next);
      next->what->happen(next->ticket);
    }
    return true;
  }
  void kill() { runtime_.kill(); }

 private:
  sim::World& prepared() {
    world_.decisions = &decisions_;
    world_.stacks = &stacks_;
    if (kJitter) {
      const auto delay = net_fake::Delay::uniform({}, std::chrono::microseconds(50));
      world_.scheduling = {.start = delay,
                           .resume = delay,
                           .timer = net_fake::Delay::uniform({}, std::chrono::microseconds(1))};
    }
    return world_;
  }
  fibers::StackPool stacks_;
  KeyedDecisions decisions_;
  sim::World world_;
  SimRuntime runtime_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Sim, RuntimeSuite, SimRuntimeWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(SimWithJitter, RuntimeSuite, SimRuntimeWorld<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, DyingSuite, SimRuntimeWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(SimWithJitter, DyingSuite, SimRuntimeWorld<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, CodeWakeSuite, SimRuntimeWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(SimWithJitter, CodeWakeSuite, SimRuntimeWorld<true>);

}  // namespace
}  // namespace rehearsal::conformance
