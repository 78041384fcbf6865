#pragma once

#include <c10/core/Allocator.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "sim/device/memory.h"
#include "sim/places/source_places.h"
#include "sim/simulated_devices.h"

namespace rehearsal::sim::device {

// A piece of work that the host wants done on a device.
struct Work {
  std::string name;
  std::vector<Region> reads;
  std::vector<Region> writes;
  std::function<void()> run;
};

// One thing that happens at a stream, for people.
struct StreamStep {
  enum class Kind : uint8_t {
    given,    // the host gives it an operation
    done,     // it has done one
    went_on,  // it waited for another stream's operation, and all before that
    awaited,  // the host has waited for one, and all before it
  };
  Kind kind = Kind::given;
  c10::DeviceIndex device = 0;
  c10::StreamId stream = 0;
  uint64_t operation = 0;  // number
  std::string_view name;   // of what is given or done
};

// The devices of one process: their memory, their streams, what these have still to do and in which
// order, and what was wrong. All that the host does to them goes through here, from any thread, one
// thing at a time; a step of a stream, which computes, is part of what lets it go on. Nothing here
// knows LibTorch's operators.
class Machine : public std::enable_shared_from_this<Machine> {
 public:
  explicit Machine(SimulatedDevicesOptions options);

  [[nodiscard]] int count() const { return options_.count; }

  // A stream of a device: 0 is the default one, 1 to 32 are the pool's, later ones were asked for.
  // Throws c10::Error for a device or stream that there is none of.
  [[nodiscard]] StreamQueue& stream(c10::DeviceIndex device, c10::StreamId id);
  [[nodiscard]] c10::StreamId stream_from_pool(c10::DeviceIndex device);
  [[nodiscard]] c10::StreamId new_stream(c10::DeviceIndex device);

  // Memory for the stream. The pointer keeps this machine alive.
  [[nodiscard]] c10::DataPtr allocate(StreamQueue& stream, size_t bytes);
  // That `stream` uses the memory, too, which is then kept from being given out again until it has
  // done what it had to do when the memory was freed.
  void use_on(const void* address, StreamQueue& stream);
  // Whether an address is of the memory of this device.
  [[nodiscard]] bool holds(c10::DeviceIndex device, const void* address) const;
  // Where its bytes are. Throws c10::Error if it is of no device of this machine; null stays null.
  [[nodiscard]] void* on_host(const void* address) const;

  // Gives work to a stream, and compares what it touches with all that was given before.
  // `done`: what else is known to be done before it.
  void give(StreamQueue& stream, Work work, const Clock& done = {});
  // The point at which the stream will have done all that it has now.
  [[nodiscard]] std::shared_ptr<Record> record(StreamQueue& stream);
  void wait(StreamQueue& stream, std::shared_ptr<Record> record);

  // The host waits. Throws c10::Error if the device has failed.
  void synchronize(StreamQueue& stream);
  void synchronize(Record& record);
  void synchronize(c10::DeviceIndex device);
  void synchronize_all();
  // Whether the host would not have to wait; it knows, then, that this is done, if it learns.
  [[nodiscard]] bool query(StreamQueue& stream, bool learns);
  [[nodiscard]] bool query(const Record& record, bool learns);

  // Tells each step of a stream from now on, while nothing else can happen; null: no more.
  void watch(std::function<void(const StreamStep&)> watcher) { watcher_ = std::move(watcher); }

  // The process has ended: what its streams have still to do is never done, and nobody is told.
  void end();

  // That something else is wrong with what this machine's memory is used for.
  void tell(const std::string& problem);
  // While nothing is given to the devices.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  // The errors of devices that have failed.
  [[nodiscard]] std::vector<std::string> failures() const;
  [[nodiscard]] uint64_t operations_given() const;
  [[nodiscard]] uint64_t operations_done() const;
  [[nodiscard]] size_t bytes_in_use(c10::DeviceIndex device) const;

 private:
  struct OneDevice {
    explicit OneDevice(c10::DeviceIndex index, size_t bytes) : memory(index, bytes) {}
    Memory memory;
    std::vector<std::unique_ptr<StreamQueue>> streams;
    uint64_t pool_turn = 0;
    std::string failure;
  };
  struct Lease;  // what a DataPtr has

  [[nodiscard]] OneDevice& device(c10::DeviceIndex index);
  [[nodiscard]] Memory* memory_of(const void* address);
  void free(Memory& memory, Block& block);
  void note(Block& block, Access access, const Clock& known);
  void note_regions(const std::vector<Region>& regions, bool writes, const Access& access,
                    const Clock& known);
  void add_problem(const Access& earlier, const Access& later);
  [[nodiscard]] std::string place_of(const OperationName& operation);
  // Some streams go on for a while, or none, as is drawn.
  void let_time_pass();
  void take_some_steps();
  [[nodiscard]] std::vector<StreamQueue*> streams_that_can_go_on() const;
  void go_on(StreamQueue& stream);
  void tell_step(StreamStep::Kind kind, const StreamQueue& stream,
                 const std::shared_ptr<const OperationName>& operation);
  template <class Done>
  void go_on_until(const Done& done);
  void throw_if_failed(const OneDevice& device) const;
  [[nodiscard]] uint32_t choose(const char* decision, uint32_t n);

  // A kernel that ends frees tensors.
  using Guard = std::scoped_lock<std::recursive_mutex>;

  const SimulatedDevicesOptions options_;
  mutable std::recursive_mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<OneDevice>> devices_;
  std::vector<StreamQueue*> streams_;  // of all devices, by number
  Clock host_;                         // what the host has waited for
  Clock asked_;                        // and what it was told to be done, too
  uint64_t given_ = 0;
  uint64_t done_ = 0;
  uint64_t drawn_ = 0;
  uint32_t eagerness_ = 0;
  std::vector<std::string> problems_;
  std::set<std::string> told_;
  std::function<void(const StreamStep&)> watcher_;  // may be null
  SourcePlaces places_;
};

}  // namespace rehearsal::sim::device
