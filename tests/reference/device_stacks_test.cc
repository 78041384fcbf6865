// Goal: the device and the streams that are current belong to the stack that made them so. Method:
// calls that change both and wait, several on one thread.
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <string>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::device_stacks_test {
namespace {

// Whether the same device and stream are current after a wait, in which others run.
bool keeps_its_own(CallContext& call, int64_t number) {
  const c10::Device device = call.device(static_cast<int>(number % call.device_count()));
  const c10::impl::VirtualGuardImpl kind(device.type());
  const c10::DeviceGuard on_device(device);
  const c10::StreamGuard own(new_stream(device));
  const c10::Stream before = kind.getStream(device);
  for (int i = 0; i < 3; ++i) call.sleep(std::chrono::milliseconds(1 + number % 3));
  return kind.getDevice() == device && kind.getStream(device) == before;
}

// As a function finds it that has changed nothing.
int64_t current_device(CallContext& call) {
  return c10::impl::VirtualGuardImpl(call.device(0).type()).getDevice().index();
}

TEST(DeviceStacks, KeepWhatIsCurrentWhileTheyWait) {
  FunctionRegistry registry;
  registry.function("keeps_its_own", &keeps_its_own).function("current_device", &current_device);
  Program program(std::move(registry));
  program.worker("worker0", [](Worker& worker) {
    const c10::DeviceGuard on_second(worker.device(1));
    std::vector<Future<bool>> kept;
    for (int64_t number = 0; number < 8; ++number)
      for (const std::string to : {"worker0", "worker1"})
        kept.push_back(worker.rpc_async(to, &keeps_its_own, number));
    for (const std::string to : {"worker0", "worker1"})
      EXPECT_EQ(worker.rpc_sync(to, &current_device), 0) << to;
    for (const Future<bool>& one : kept) EXPECT_TRUE(one.wait());
    EXPECT_EQ(c10::impl::VirtualGuardImpl(worker.device(0).type()).getDevice(), worker.device(1));
  });
  program.worker("worker1");
  in_both_worlds(program, {.seeds = tries(20), .devices = 2});
}

}  // namespace
}  // namespace rehearsal::reference::device_stacks_test
