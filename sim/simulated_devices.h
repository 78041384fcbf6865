#pragma once

#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/stream_set.h"

namespace rehearsal::sim {

namespace device {
class Machine;
}

struct SimulatedDevicesOptions {
  int count = 1;                    // sim:0 to sim:<count - 1>; 1 to SimulatedDevices::kCountMax
  size_t memory = size_t{1} << 30;  // bytes of each
  uint64_t seed = 1;                // of the order in which streams go on
  // What decides in place of the seed: any number below n, for a decision that is named. With the
  // same answers everything happens again.
  std::function<uint32_t(const std::string& decision, uint32_t n)> choose;
  // Whether they are the devices of the process, as a machine's GPUs are: those of every thread
  // that has none of its own. Else they are those of the thread that makes them, and of no other.
  bool for_all_threads = false;
};

// Devices for LibTorch that compute as GPUs do, later than the host, and find what a program forgot
// to wait for. For any program of LibTorch: it takes `sim:0` where it would take `cuda:0`.
//
//   sim::SimulatedDevices devices({.count = 2, .seed = 7});
//   auto x = torch::ones({3}).to(torch::Device("sim:0"), /*non_blocking=*/true);
//   {
//     c10::StreamGuard on_side(sim::SimulatedDevices::new_stream(0));
//     auto y = x * 2;        // reads x on another stream than the one that writes it
//   }
//   devices.check();         // throws: says which operations, and which wait is missing
//
// What holds of a GPU holds here:
// - An operator gives its kernel to the current stream of its device, and returns. Kernels of a
//   stream come one after the other; between streams, and between a stream and the host, only
//   events and synchronisation make an order (`c10::Stream`, `c10::Event`, `c10::StreamGuard`, as
//   in any code that serves several devices). Which stream goes on, and when, is drawn from the
//   seed.
// - What is copied to the host with `non_blocking` is there only once its stream has come so far.
//   Copies that are not, `item()`, printing, and operators whose result's shape depends on values
//   wait for the current stream.
// - The host cannot touch the memory: code that does ends its process.
// - Memory that is freed can be given out again at once to the stream for which it was allocated.
//   Storage that another stream uses is recorded with it (`tensor.record_stream(stream)`), or that
//   stream is waited for.
// - A kernel that fails fails its device: its error is thrown by what waits for the device next,
// and
//   by all that comes then.
//
// And it tells, where a GPU computes something else in one run of many:
// - two operations that touch the same bytes, one of them writing, which nothing puts in order. It
//   tells so whether or not the order of this run was the wrong one: it compares vector clocks;
// - memory that is given out again while an operation may still use it;
// - all memory holds NaN (bytes 0xFF) until it is written.
//
// Kernels are the CPU's, so that results have the CPU's bits. Random numbers follow from LibTorch's
// default CPU generator, when an operator is called. Backward passes run on the thread that calls
// them.
//
// An object belongs to the thread that made it; there, what names `sim` devices means those of the
// latest object that lives. Tensors may outlive it, but can only be destroyed then.
//
// With `for_all_threads` every thread may use them, each with a current device and current streams
// of its own. One operation or step of a stream happens at a time. As threads are not drawn, the
// same seed gives another order each time; what one thread has waited for counts for all, so that a
// missing wait may stay untold where another thread has waited; and random numbers of the CPU and
// of kernels come from one generator in no fixed order. `problems` is read when nothing is given to
// the devices any more.
class SimulatedDevices {
 public:
  explicit SimulatedDevices(SimulatedDevicesOptions options = {});
  ~SimulatedDevices();
  SimulatedDevices(const SimulatedDevices&) = delete;
  SimulatedDevices& operator=(const SimulatedDevices&) = delete;

  // LibTorch's type of these devices (PrivateUse1), which it calls `sim` from the first object on.
  static constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

  static constexpr int kCountMax = 64;

  // The host waits until all devices have done all that they were given.
  void synchronize();

  // A stream of a device of this thread, which nothing else uses: for c10::StreamGuard.
  [[nodiscard]] static c10::Stream new_stream(int device);

  // All that was found so far, a paragraph each, with the lines of the program that called both
  // operators. Two that are called at the same lines, on the same streams, are told once.
  [[nodiscard]] const std::vector<std::string>& problems() const;

  // Synchronises, and throws std::runtime_error with all problems, if there are any, and with the
  // error of a device that has failed.
  void check();

  // Operations that were given to streams so far, and that are done.
  [[nodiscard]] uint64_t operations_given() const;
  [[nodiscard]] uint64_t operations_done() const;

  // Bytes of tensors on a device.
  [[nodiscard]] size_t bytes_in_use(int device) const;

  // For WorkerOptions::node.devices: a worker over TCP is told so which devices it has.
  [[nodiscard]] DevicesHere here() const;

  [[nodiscard]] device::Machine& machine() { return *machine_; }

 private:
  struct Outer;  // what was before
  std::shared_ptr<device::Machine> machine_;
  std::unique_ptr<Outer> outer_;
};

}  // namespace rehearsal::sim
