#include "core/base/stream_set.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <utility>

namespace rehearsal {
namespace {

using c10::impl::VirtualGuardImpl;

c10::Stream current_stream_of(c10::Device device) {
  return VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

StreamMarks::StreamMarks(const std::vector<c10::Stream>& streams) {
  marks_.reserve(streams.size());
  for (const c10::Stream& stream : streams) {
    Mark& mark = marks_.emplace_back(Mark{stream, c10::Event(stream.device_type())});
    mark.event.record(stream);
  }
}

void StreamMarks::join() const {
  for (const Mark& mark : marks_) {
    const c10::Stream current = current_stream_of(mark.stream.device());
    if (current != mark.stream) mark.event.block(current);
  }
}

CurrentDevices::CurrentDevices(const DevicesHere& devices) : device_(devices.at(0)) {
  for (int i = 0; i < devices.count; ++i)
    streams_.push_back(VirtualGuardImpl(devices.type).getDefaultStream(devices.at(i)));
}

void CurrentDevices::swap_with_thread() {
  const VirtualGuardImpl kind(device_.type());
  for (c10::Stream& stream : streams_) stream = kind.exchangeStream(stream);
  device_ = kind.exchangeDevice(device_);
}

void join_all(const AllMarks& marks) {
  for (const auto& one : marks) one->join();
}

bool StreamMarks::reached() const {
  return std::all_of(marks_.begin(), marks_.end(),
                     [](const Mark& mark) { return mark.event.query(); });
}

std::shared_ptr<const StreamSet> StreamSet::current(const DevicesHere& devices) {
  if (devices.count == 0) return nullptr;
  std::vector<c10::Stream> streams;
  for (int i = 0; i < devices.count; ++i) streams.push_back(current_stream_of(devices.at(i)));
  return std::shared_ptr<const StreamSet>(new StreamSet(std::move(streams)));
}

std::shared_ptr<const StreamSet> StreamSet::from_pool(const DevicesHere& devices) {
  if (devices.count == 0) return nullptr;
  const VirtualGuardImpl kind(devices.type);
  std::vector<c10::Stream> streams;
  for (int i = 0; i < devices.count; ++i)
    streams.push_back(kind.getStreamFromGlobalPool(devices.at(i)));
  return std::shared_ptr<const StreamSet>(new StreamSet(std::move(streams)));
}

void StreamSet::after(const StreamSet& others) const {
  for (size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i] == others.streams_[i]) continue;
    c10::Event event(streams_[i].device_type());
    event.record(others.streams_[i]);
    event.block(streams_[i]);
  }
}

std::shared_ptr<const StreamMarks> StreamSet::mark() const {
  return std::make_shared<const StreamMarks>(streams_);
}

InStreams::InStreams(const Streams& streams) {
  if (streams == nullptr) return;
  for (const c10::Stream& stream : streams->streams())
    before_.push_back(VirtualGuardImpl(stream.device_type()).exchangeStream(stream));
}

InStreams::~InStreams() {
  for (const c10::Stream& stream : before_)
    VirtualGuardImpl(stream.device_type()).exchangeStream(stream);
}

namespace {

// The streams that were current before, if the others are not these.
Streams entered(const DevicesHere& devices, const Streams& inside) {
  if (inside == nullptr) return nullptr;
  Streams outside = StreamSet::current(devices);
  if (outside->streams() == inside->streams()) return nullptr;
  inside->after(*outside);
  return outside;
}

}  // namespace

BetweenStreams::BetweenStreams(const DevicesHere& devices, const Streams& streams)
    : outside_(entered(devices, streams)),
      inside_(streams),
      in_(outside_ != nullptr ? inside_ : nullptr) {}

BetweenStreams::~BetweenStreams() {
  if (outside_ != nullptr) outside_->after(*inside_);
}

BesideStreams::BesideStreams(const DevicesHere& devices, std::vector<Streams> of_values)
    : own_(StreamSet::current(devices)), of_values_(std::move(of_values)) {
  if (own_ == nullptr) return;
  for (const Streams& streams : of_values_) own_->after(*streams);
}

BesideStreams::~BesideStreams() {
  if (own_ == nullptr) return;
  for (const Streams& streams : of_values_) streams->after(*own_);
}

}  // namespace rehearsal
