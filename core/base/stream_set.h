#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <memory>
#include <vector>

// Devices beside the CPU compute later than the code that asks them, in streams: what a stream is
// given comes one after another, and between streams there is no order but by events. Here is what
// the library needs of that; all of it goes through LibTorch's own interfaces, so that it is the
// same for every kind of device. The host never waits in it.
namespace rehearsal {

// The devices of this process that can hold tensors, beside the CPU. All are of one kind.
struct DevicesHere {
  c10::DeviceType type = c10::DeviceType::CPU;
  int count = 0;  // zero: there are none
  // A larger tensor is copied in parts of so many bytes on its way to the host's memory: the first
  // ones leave this process while the rest is copied.
  uint64_t copied_at_once = uint64_t{4} << 20;
  // Whether LibTorch's engine has a thread for each of them: it starts those of the devices that
  // there are at the first backward pass of the process. Else it must not use threads.
  bool engine_has_threads = true;

  [[nodiscard]] c10::Device at(int number) const {
    return {type, static_cast<c10::DeviceIndex>(number)};
  }
};

// The points that some streams will have reached when they have done all that they had been given.
class StreamMarks {
 public:
  explicit StreamMarks(const std::vector<c10::Stream>& streams);

  // The calling code comes after these points with all that it gives to devices from now on.
  void join() const;

  // Whether all are reached. Throws c10::Error if a device has failed.
  [[nodiscard]] bool reached() const;

 private:
  struct Mark {
    c10::Stream stream;
    c10::Event event;
  };
  std::vector<Mark> marks_;
};

// Which device is current on a stack, and which stream of each. Two stacks of one thread must not
// see each other's.
class CurrentDevices {
 public:
  // As a new thread has it: the first device, and the default stream of each.
  explicit CurrentDevices(const DevicesHere& devices);

  // Gives the calling thread these and holds what the thread had.
  void swap_with_thread();

 private:
  c10::Device device_;
  std::vector<c10::Stream> streams_;
};

// Points of several sets of streams; each is there.
using AllMarks = std::vector<std::shared_ptr<const StreamMarks>>;
void join_all(const AllMarks& marks);

// A stream for each device of a process. Never changed once made.
class StreamSet {
 public:
  // Those that the calling code uses now. Null: there are no devices.
  [[nodiscard]] static std::shared_ptr<const StreamSet> current(const DevicesHere& devices);
  // The next ones of each device's pool. Null: there are no devices.
  [[nodiscard]] static std::shared_ptr<const StreamSet> from_pool(const DevicesHere& devices);

  // All that is given to these from now on comes after all that those have been given.
  void after(const StreamSet& others) const;

  [[nodiscard]] std::shared_ptr<const StreamMarks> mark() const;

  [[nodiscard]] const std::vector<c10::Stream>& streams() const { return streams_; }

 private:
  explicit StreamSet(std::vector<c10::Stream> streams) : streams_(std::move(streams)) {}

  std::vector<c10::Stream> streams_;
};

using Streams = std::shared_ptr<const StreamSet>;

// While it lives, the code of this stack gives its work on devices to these streams; then to those
// before. Null: nothing changes.
class InStreams {
 public:
  explicit InStreams(const Streams& streams);
  ~InStreams();
  InStreams(const InStreams&) = delete;
  InStreams& operator=(const InStreams&) = delete;

 private:
  std::vector<c10::Stream> before_;
};

// The same for code that uses a value which lives in these streams: it comes after what the calling
// code has given to devices, and what that gives afterwards comes after it.
class BetweenStreams {
 public:
  BetweenStreams(const DevicesHere& devices, const Streams& streams);
  ~BetweenStreams();
  BetweenStreams(const BetweenStreams&) = delete;
  BetweenStreams& operator=(const BetweenStreams&) = delete;

 private:
  const Streams outside_;  // null: they are these themselves
  const Streams inside_;
  const InStreams in_;
};

// The same for code that uses several values, and stays in its own streams: it comes after what
// those of the values have been given, and what they are given afterwards comes after it.
class BesideStreams {
 public:
  // Each is there.
  BesideStreams(const DevicesHere& devices, std::vector<Streams> of_values);
  ~BesideStreams();
  BesideStreams(const BesideStreams&) = delete;
  BesideStreams& operator=(const BesideStreams&) = delete;

 private:
  const Streams own_;  // null: there are no devices
  const std::vector<Streams> of_values_;
};

}  // namespace rehearsal
