#include "sim/device/selection.h"

#include <c10/core/AutogradState.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace rehearsal::sim::device {
namespace {

struct OfProcess {
  std::atomic<uint64_t> turn{1};  // rises with each change
  std::mutex guard;
  std::shared_ptr<Machine> machine;
};

OfProcess& of_process() {
  static auto* devices = new OfProcess;  // outlives the last thread
  return *devices;
}

void take_those_of_process(Selection& selection) {
  OfProcess& devices = of_process();
  {
    const std::scoped_lock lock(devices.guard);
    selection = {.machine = devices.machine, .turn = devices.turn};
  }
  if (selection.machine != nullptr)
    c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace

c10::StreamId Selection::stream_of(c10::DeviceIndex index) const {
  const auto place = static_cast<size_t>(index);
  return place < streams.size() ? streams[place] : 0;
}

c10::StreamId Selection::set_stream(c10::DeviceIndex index, c10::StreamId stream) {
  const auto place = static_cast<size_t>(index);
  if (streams.size() <= place) streams.resize(place + 1);
  return std::exchange(streams[place], stream);
}

Selection& selection() {
  thread_local Selection of_this_thread;
  const bool has_own = of_this_thread.machine != nullptr && of_this_thread.turn == 0;
  if (!has_own && of_this_thread.turn != of_process().turn.load(std::memory_order_acquire))
    take_those_of_process(of_this_thread);
  return of_this_thread;
}

std::shared_ptr<Machine> set_machine_of_process(std::shared_ptr<Machine> machine) {
  OfProcess& devices = of_process();
  const std::scoped_lock lock(devices.guard);
  devices.turn.fetch_add(1, std::memory_order_release);
  return std::exchange(devices.machine, std::move(machine));
}

Machine& current_machine() {
  TORCH_CHECK(selection().machine != nullptr,
              "there are no simulated devices in this thread: make a sim::SimulatedDevices first");
  return *selection().machine;
}

StreamQueue& current_stream(c10::DeviceIndex device) {
  return current_machine().stream(device, selection().stream_of(device));
}

}  // namespace rehearsal::sim::device
