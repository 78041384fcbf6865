#include "tests/conformance/code_wake_suite.h"
#include "tests/conformance/dying_suite.h"
#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {

// One runtime; the test's own thread waits in it.
template <uint32_t kWorkerThreads>
class RuntimeWorld {
 public:
  // The threads decide what a killed runtime of several threads has not started yet: see
  // real_runtime_test.cc.
  static constexpr bool kKills = false;

  RuntimeWorld() : runtime_({.worker_threads = kWorkerThreads}) {}
  ~RuntimeWorld() { end_executions(); }

  RealRuntime& runtime() { return runtime_; }
  const Executions& executions() { return runtime_; }
  bool advance_until(const std::function<bool()>& holds) { return wait_until(runtime_, holds); }
  void kill() {}

 protected:
  // A body's last report comes before its end.
  void end_executions() { EXPECT_TRUE(runtime_.wait_for_executions(std::chrono::seconds(60))); }

 private:
  RealRuntime runtime_;
};

// No worker threads: executions run on the test's thread while it waits.
class MainThreadWorld : public RuntimeWorld<0> {
 public:
  MainThreadWorld() : main_(CausalId{}, "main", Seed{1}), guard_(runtime().register_main(main_)) {}
  ~MainThreadWorld() { end_executions(); }

 private:
  Execution main_;
  RealRuntime::MainGuard guard_;
};

}  // namespace rehearsal::real

namespace rehearsal::conformance {

using RealWorlds =
    testing::Types<real::RuntimeWorld<1>, real::RuntimeWorld<3>, real::MainThreadWorld>;
INSTANTIATE_TYPED_TEST_SUITE_P(OverThreads, RuntimeSuite, RealWorlds);
INSTANTIATE_TYPED_TEST_SUITE_P(OverThreads, DyingSuite, RealWorlds);
INSTANTIATE_TYPED_TEST_SUITE_P(OverThreads, CodeWakeSuite, RealWorlds);

}  // namespace rehearsal::conformance
