#include "real_net/runtime/real_runtime.h"
#include "record/recording_runtime.h"
#include "tests/conformance/code_wake_suite.h"
#include "tests/conformance/dying_suite.h"
#include "tests/real_net/support/tcp_world.h"
#include "tests/temporary_folder.h"

namespace rehearsal::record {

// A runtime of threads that is recorded. The bodies of the suite run as executions of it.
template <uint32_t kWorkerThreads>
class RecordedWorld {
 public:
  static constexpr bool kKills = false;

  RecordedWorld()
      : threads_(std::make_shared<real::RealRuntime>(
            real::RuntimeOptions{.worker_threads = kWorkerThreads})),
        recorder_(std::make_shared<Recorder>(RecordOptions{.file = file_, .ring_bytes = 1 << 20})),
        runtime_(std::make_shared<RecordingRuntime>(threads_, *threads_, recorder_)) {
    RecordHeader header;
    header.node.names = {"only"};
    recorder_->start(header).or_throw();
  }
  ~RecordedWorld() { EXPECT_TRUE(threads_->wait_for_executions(std::chrono::seconds(10))); }

  Runtime& runtime() { return *runtime_; }
  const Executions& executions() { return *runtime_; }
  bool advance_until(const std::function<bool()>& holds) {
    return real::wait_until(*threads_, holds);
  }
  void kill() {}

 private:
  const TemporaryFolder folder_;
  const std::string file_ = folder_.file("only.record");
  const std::shared_ptr<real::RealRuntime> threads_;
  const std::shared_ptr<Recorder> recorder_;
  const std::shared_ptr<RecordingRuntime> runtime_;
};

}  // namespace rehearsal::record

namespace rehearsal::conformance {

using RecordedWorlds = testing::Types<record::RecordedWorld<1>, record::RecordedWorld<3>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Recorded, RuntimeSuite, RecordedWorlds);
INSTANTIATE_TYPED_TEST_SUITE_P(Recorded, DyingSuite, RecordedWorlds);
INSTANTIATE_TYPED_TEST_SUITE_P(Recorded, CodeWakeSuite, RecordedWorlds);

}  // namespace rehearsal::conformance
