#include "sim/device/device_guard.h"

#include <c10/core/DeviceCapability.h>
#include <c10/util/Exception.h>

#include <utility>

namespace rehearsal::sim::device {
namespace {

// The thing behind the pointer of a c10::Event: its latest record.
struct Event {
  std::shared_ptr<Machine> machine;
  std::shared_ptr<Record> latest;
};

c10::DeviceIndex index_of(c10::Device device) {
  return device.has_index() ? device.index() : selection().device;
}

c10::Stream stream_of(c10::DeviceIndex device, c10::StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(SimulatedDevices::kType, device), id);
}

StreamQueue& queue_of(const c10::Stream& stream) {
  return current_machine().stream(stream.device_index(), stream.id());
}

}  // namespace

c10::DeviceType DeviceGuard::type() const { return SimulatedDevices::kType; }

c10::Device DeviceGuard::exchangeDevice(c10::Device device) const {
  const c10::Device before = getDevice();
  setDevice(device);
  return before;
}

c10::Device DeviceGuard::getDevice() const { return {SimulatedDevices::kType, selection().device}; }

void DeviceGuard::setDevice(c10::Device device) const {
  if (!device.has_index()) return;
  TORCH_CHECK(device.index() < deviceCount(), "there is no device ", device.str(), ": there are ",
              int{deviceCount()}, " simulated devices in this thread");
  uncheckedSetDevice(device);
}

void DeviceGuard::uncheckedSetDevice(c10::Device device) const noexcept {
  if (device.has_index()) selection().device = device.index();
}

c10::DeviceIndex DeviceGuard::deviceCount() const noexcept {
  const auto& machine = selection().machine;
  return static_cast<c10::DeviceIndex>(machine == nullptr ? 0 : machine->count());
}

c10::DeviceCapability DeviceGuard::getDeviceCapability(c10::Device) const { return {}; }

c10::Stream DeviceGuard::getStream(c10::Device device) const {
  const c10::DeviceIndex index = index_of(device);
  return stream_of(index, selection().stream_of(index));
}

c10::Stream DeviceGuard::getDefaultStream(c10::Device device) const {
  return stream_of(index_of(device), 0);
}

c10::Stream DeviceGuard::getStreamFromGlobalPool(c10::Device device, bool) const {
  const c10::DeviceIndex index = index_of(device);
  return stream_of(index, current_machine().stream_from_pool(index));
}

c10::Stream DeviceGuard::getNewStream(c10::Device device, int) const {
  const c10::DeviceIndex index = index_of(device);
  return stream_of(index, current_machine().new_stream(index));
}

c10::Stream DeviceGuard::exchangeStream(c10::Stream stream) const {
  (void)queue_of(stream);  // there is one
  const c10::DeviceIndex device = stream.device_index();
  return stream_of(device, selection().set_stream(device, stream.id()));
}

bool DeviceGuard::queryStream(const c10::Stream& stream) const {
  return current_machine().query(queue_of(stream), selection().learns_by_asking);
}

void DeviceGuard::synchronizeStream(const c10::Stream& stream) const {
  current_machine().synchronize(queue_of(stream));
}

void DeviceGuard::synchronizeDevice(c10::DeviceIndex device) const {
  current_machine().synchronize(device);
}

void DeviceGuard::recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const {
  if (data.get() != nullptr) current_machine().use_on(data.get(), queue_of(stream));
}

void DeviceGuard::record(void** event, const c10::Stream& stream, c10::DeviceIndex,
                         c10::EventFlag) const {
  if (*event == nullptr) *event = new Event;
  *static_cast<Event*>(*event) = {selection().machine, current_machine().record(queue_of(stream))};
}

void DeviceGuard::block(void* event, const c10::Stream& stream) const {
  if (event != nullptr && static_cast<Event*>(event)->latest)
    current_machine().wait(queue_of(stream), static_cast<Event*>(event)->latest);
}

bool DeviceGuard::queryEvent(void* event) const {
  if (event == nullptr) return true;
  const Event& recorded = *static_cast<Event*>(event);
  return recorded.machine->query(*recorded.latest, selection().learns_by_asking);
}

void DeviceGuard::synchronizeEvent(void* event) const {
  if (event == nullptr) return;
  const Event& recorded = *static_cast<Event*>(event);
  recorded.machine->synchronize(*recorded.latest);
}

void DeviceGuard::destroyEvent(void* event, c10::DeviceIndex) const noexcept {
  delete static_cast<Event*>(event);
}

}  // namespace rehearsal::sim::device
