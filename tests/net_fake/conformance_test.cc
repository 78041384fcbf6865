#include "tests/conformance/transport_fault_suite.h"
#include "tests/conformance/transport_filling_suite.h"
#include "tests/conformance/transport_frame_suite.h"
#include "tests/conformance/transport_life_suite.h"
#include "tests/conformance/transport_suite.h"
#include "tests/net_fake/fake_world.h"

namespace rehearsal::conformance {
namespace {

using net_fake::FakeCluster;
using net_fake::PartitionId;

template <bool kThroughBytes>
class FakeTransportWorld {
 public:
  FakeTransportWorld() : cluster_({"zero", "one"}, {.through_bytes = kThroughBytes}) {}

  Transport& transport(int end) { return cluster_.transport(number(end)); }
  RecordingSink& sink(int end) { return cluster_.sink(number(end)); }
  Hello hello(int end) { return cluster_.transport(number(end)).hello(); }
  void run(int end, Task task) { cluster_.run(number(end), std::move(task)); }
  bool advance_until(const std::function<bool()>& holds) { return cluster_.advance_until(holds); }
  void advance(Duration time) { cluster_.schedule.advance(time); }
  void reset_link() { cluster_.network.reset("zero", "one"); }
  void set_blocked(bool blocked) {
    if (blocked) {
      (void)cluster_.network.isolate("zero");
    } else {
      cluster_.network.heal();
    }
  }
  void set_refusing(bool refusing) { cluster_.network.everywhere().refuse(refusing ? 1.0 : 0.0); }
  void corrupt_next() {
    bool done = false;
    cluster_.network.everywhere().corrupt(0.5);
    cluster_.decisions.answers[net_fake::DecisionKind::corruption] = [done](const net_fake::Key&,
                                                                            uint64_t n) mutable {
      return std::exchange(done, true) ? 0 : n - 1;
    };
  }
  void crash(int end) { cluster_.crash(number(end)); }
  void restart(int end) { cluster_.restart(number(end)); }
  uint64_t segments_taken(int end) { return cluster_.pool(number(end)).taken(); }

 private:
  static uint32_t number(int end) { return static_cast<uint32_t>(end); }
  FakeCluster cluster_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, TransportSuite, FakeTransportWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(FakeThroughBytes, TransportSuite, FakeTransportWorld<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, TransportFrameSuite, FakeTransportWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(FakeThroughBytes, TransportFrameSuite, FakeTransportWorld<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, TransportLifeSuite, FakeTransportWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(FakeThroughBytes, TransportLifeSuite, FakeTransportWorld<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, TransportFaultSuite, FakeTransportWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, TransportFillingSuite, FakeTransportWorld<false>);
INSTANTIATE_TYPED_TEST_SUITE_P(FakeThroughBytes, TransportFaultSuite, FakeTransportWorld<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(FakeThroughBytes, TransportFillingSuite, FakeTransportWorld<true>);

}  // namespace
}  // namespace rehearsal::conformance
