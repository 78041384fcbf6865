#include "sim/device/machine.h"

#include <c10/util/Exception.h>
#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "sim/device/missing_wait.h"

namespace rehearsal::sim::device {
namespace {

constexpr c10::StreamId kPoolStreams = 32;
// How eager streams can be: of so many draws, one for each operation that is given, so many let
// streams go on. 0: they go on only when the host waits.
constexpr uint32_t kEagernessMax = 4;
constexpr uint32_t kStepsMax = 4;
constexpr int kFramesMax = 64;

// The return addresses of the host's stack, innermost first.
std::vector<void*> calling_stack() {
  std::array<void*, kFramesMax> addresses{};
  const int count = backtrace(addresses.data(), kFramesMax);
  const auto innermost = addresses.begin() + 1;
  return std::vector<void*>(innermost, addresses.begin() + std::max(count, 1));
}

// A well mixed number for each n (SplitMix64, S. Vigna).
uint64_t mixed(uint64_t seed, uint64_t n) {
  uint64_t z = seed + n * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

}  // namespace

struct Machine::Lease {
  std::shared_ptr<Machine> machine;
  Memory* memory;
  Block* block;

  static void end(void* lease) {
    const std::unique_ptr<Lease> owned(static_cast<Lease*>(lease));
    owned->machine->free(*owned->memory, *owned->block);
  }
};

Machine::Machine(SimulatedDevicesOptions options) : options_(std::move(options)) {
  TORCH_CHECK_VALUE(1 <= options_.count && options_.count <= SimulatedDevices::kCountMax,
                    "there can be 1 to ", SimulatedDevices::kCountMax, " simulated devices, not ",
                    options_.count);
  for (int i = 0; i < options_.count; ++i) {
    const auto index = static_cast<c10::DeviceIndex>(i);
    devices_.push_back(std::make_unique<OneDevice>(index, options_.memory));
    for (c10::StreamId id = 0; id <= kPoolStreams; ++id) (void)new_stream(index);
  }
  eagerness_ = choose("eagerness", kEagernessMax + 1);
}

StreamQueue& Machine::stream(c10::DeviceIndex index, c10::StreamId id) {
  const Guard guard(mutex_);
  OneDevice& owner = device(index);
  TORCH_CHECK(0 <= id && static_cast<size_t>(id) < owner.streams.size(), "sim:", int{index},
              " has no stream ", id);
  return *owner.streams[static_cast<size_t>(id)];
}

c10::StreamId Machine::stream_from_pool(c10::DeviceIndex index) {
  const Guard guard(mutex_);
  return 1 + static_cast<c10::StreamId>(device(index).pool_turn++ % kPoolStreams);
}

c10::StreamId Machine::new_stream(c10::DeviceIndex index) {
  const Guard guard(mutex_);
  OneDevice& owner = device(index);
  const auto id = static_cast<c10::StreamId>(owner.streams.size());
  owner.streams.push_back(std::make_unique<StreamQueue>(index, id, streams_.size()));
  streams_.push_back(owner.streams.back().get());
  return id;
}

c10::DataPtr Machine::allocate(StreamQueue& stream, size_t bytes) {
  const Guard guard(mutex_);
  const c10::Device where(SimulatedDevices::kType, stream.device());
  if (bytes == 0) return {nullptr, where};
  Memory& memory = device(stream.device()).memory;
  Block& block = memory.allocate(stream, bytes);
  auto* lease = new Lease{shared_from_this(), &memory, &block};
  c10::DataPtr data(reinterpret_cast<void*>(block.address), lease, &Lease::end, where);
  give(stream,
       {.name = "memory given out",
        .writes = {region_of(block.address, bytes)},
        .run = [real = memory.on_host(data.get()), bytes] { std::memset(real, kPoison, bytes); }},
       block.done_before);
  return data;
}

void Machine::use_on(const void* address, StreamQueue& stream) {
  const Guard guard(mutex_);
  Memory* memory = memory_of(address);
  TORCH_CHECK(memory != nullptr, "record_stream: the tensor is not of these simulated devices");
  Block* block = memory->find(address);
  if (block != nullptr && block->stream != &stream) block->used_on.insert(&stream);
}

bool Machine::holds(c10::DeviceIndex index, const void* address) const {
  return devices_.at(static_cast<size_t>(index))->memory.holds(address);
}

void* Machine::on_host(const void* address) const {
  for (const auto& one : devices_)
    if (one->memory.holds(address)) return one->memory.on_host(address);
  TORCH_CHECK(address == nullptr, "a tensor of other simulated devices than those of this thread");
  return nullptr;
}

void Machine::give(StreamQueue& stream, Work work, const Clock& done) {
  const Guard guard(mutex_);
  throw_if_failed(device(stream.device()));
  Clock& known = stream.known();
  known.join(host_);
  auto name = std::make_shared<const OperationName>(OperationName{.number = ++given_,
                                                                  .name = std::move(work.name),
                                                                  .device = stream.device(),
                                                                  .stream = stream.id(),
                                                                  .called_from = calling_stack()});
  const Access access{.by = name, .at = known.tick(stream.number())};
  Clock before = known;
  before.join(done);
  note_regions(work.reads, false, access, before);
  note_regions(work.writes, true, access, before);
  tell_step(StreamStep::Kind::given, stream, name);
  stream.add({.name = std::move(name), .run = std::move(work.run)});
  let_time_pass();
}

std::shared_ptr<Record> Machine::record(StreamQueue& stream) {
  const Guard guard(mutex_);
  stream.known().join(host_);
  auto record = std::make_shared<Record>(Record{.known = stream.known(), .after = stream.last()});
  stream.add({.reaches = record});
  return record;
}

void Machine::wait(StreamQueue& stream, std::shared_ptr<Record> record) {
  const Guard guard(mutex_);
  stream.known().join(record->known);
  stream.add({.waits_for = std::move(record)});
}

void Machine::synchronize(StreamQueue& stream) {
  const Guard guard(mutex_);
  go_on_until([&] { return stream.is_idle(); });
  tell_step(StreamStep::Kind::awaited, stream, stream.last());
  host_.join(stream.known());
  throw_if_failed(device(stream.device()));
}

void Machine::synchronize(Record& record) {
  const Guard guard(mutex_);
  go_on_until([&] { return record.done; });
  if (record.after)
    tell_step(StreamStep::Kind::awaited, stream(record.after->device, record.after->stream),
              record.after);
  host_.join(record.known);
  for (const auto& one : devices_) throw_if_failed(*one);
}

void Machine::synchronize(c10::DeviceIndex index) {
  const Guard guard(mutex_);
  for (const auto& stream : device(index).streams) synchronize(*stream);
}

void Machine::synchronize_all() {
  for (size_t i = 0; i < devices_.size(); ++i) synchronize(static_cast<c10::DeviceIndex>(i));
}

bool Machine::query(StreamQueue& stream, bool learns) {
  const Guard guard(mutex_);
  take_some_steps();
  if (stream.is_idle()) (learns ? host_ : asked_).join(stream.known());
  return stream.is_idle();
}

bool Machine::query(const Record& record, bool learns) {
  const Guard guard(mutex_);
  take_some_steps();
  if (record.done) (learns ? host_ : asked_).join(record.known);
  for (const auto& one : devices_) throw_if_failed(*one);
  return record.done;
}

std::vector<std::string> Machine::failures() const {
  const Guard guard(mutex_);
  std::vector<std::string> result;
  for (const auto& one : devices_)
    if (!one->failure.empty()) result.push_back(one->failure);
  return result;
}

uint64_t Machine::operations_given() const {
  const Guard guard(mutex_);
  return given_;
}

uint64_t Machine::operations_done() const {
  const Guard guard(mutex_);
  return done_;
}

size_t Machine::bytes_in_use(c10::DeviceIndex index) const {
  const Guard guard(mutex_);
  return devices_.at(static_cast<size_t>(index))->memory.bytes_in_use();
}

Machine::OneDevice& Machine::device(c10::DeviceIndex index) {
  TORCH_CHECK(0 <= index && static_cast<size_t>(index) < devices_.size(),
              "there is no device sim:", int{index}, ": there are ", devices_.size(),
              ", from sim:0");
  return *devices_[static_cast<size_t>(index)];
}

Memory* Machine::memory_of(const void* address) {
  for (const auto& one : devices_)
    if (one->memory.holds(address)) return &one->memory;
  return nullptr;
}

void Machine::free(Memory& memory, Block& block) {
  const Guard guard(mutex_);
  std::vector<std::shared_ptr<Record>> busy_until;
  for (StreamQueue* stream : block.used_on) busy_until.push_back(record(*stream));
  Clock done = host_;
  done.join(asked_);
  memory.free(block, std::move(busy_until), std::move(done));
}

void Machine::note_regions(const std::vector<Region>& regions, bool writes, const Access& access,
                           const Clock& known) {
  for (const Region& region : regions) {
    if (region.is_empty()) continue;
    const auto* address = reinterpret_cast<const void*>(region.begin);
    Memory* memory = memory_of(address);
    Block* block = memory == nullptr ? nullptr : memory->find(address);
    TORCH_CHECK(block != nullptr, access.by->name,
                ": a tensor of other simulated devices than those of this thread");
    Access of_block = access;
    of_block.writes = writes;
    of_block.allocation = block->allocation;
    of_block.region = region;
    note(*block, std::move(of_block), known);
  }
}

void Machine::note(Block& block, Access access, const Clock& known) {
  for (const Access& earlier : block.accesses.add(access, known)) add_problem(earlier, access);
}

void Machine::tell(const std::string& problem) {
  const Guard guard(mutex_);
  problems_.push_back(problem);
}

void Machine::add_problem(const Access& earlier, const Access& later) {
  const MissingWait missing{.earlier = earlier,
                            .later = later,
                            .earlier_place = place_of(*earlier.by),
                            .later_place = place_of(*later.by)};
  if (told_.insert(key_of(missing)).second) problems_.push_back(text_of(missing));
}

std::string Machine::place_of(const OperationName& operation) {
  return short_place(places_.stack_of(operation.called_from));
}

void Machine::let_time_pass() {
  if (eagerness_ > 0 && choose("pause", kEagernessMax) < eagerness_) take_some_steps();
}

void Machine::take_some_steps() {
  const uint32_t steps = 1 + choose("steps", kStepsMax);
  for (uint32_t i = 0; i < steps; ++i) {
    const std::vector<StreamQueue*> able = streams_that_can_go_on();
    if (able.empty()) return;
    go_on(*able[choose("stream", static_cast<uint32_t>(able.size()))]);
  }
}

std::vector<StreamQueue*> Machine::streams_that_can_go_on() const {
  std::vector<StreamQueue*> able;
  std::ranges::copy_if(streams_, std::back_inserter(able), &StreamQueue::can_go_on);
  return able;
}

template <class Done>
void Machine::go_on_until(const Done& done) {
  while (!done()) {
    const std::vector<StreamQueue*> able = streams_that_can_go_on();
    TORCH_INTERNAL_ASSERT(!able.empty(), "the streams of simulated devices wait for each other");
    go_on(*able[choose("stream", static_cast<uint32_t>(able.size()))]);
  }
}

void Machine::go_on(StreamQueue& stream) {
  const Operation operation = stream.take();
  if (operation.reaches) operation.reaches->done = true;
  if (operation.waits_for) tell_step(StreamStep::Kind::went_on, stream, operation.waits_for->after);
  if (!operation.run) return;
  ++done_;
  tell_step(StreamStep::Kind::done, stream, operation.name);
  std::string& failure = device(stream.device()).failure;
  if (!failure.empty()) return;
  try {
    operation.run();
  } catch (const c10::Error& error) {
    failure = text_of(*operation.name, place_of(*operation.name)) +
              " has failed: " + error.what_without_backtrace();
  } catch (const std::exception& error) {
    failure = text_of(*operation.name, place_of(*operation.name)) + " has failed: " + error.what();
  }
}

// The work that is left may hold memory of this machine, and of others that hold this one's.
void Machine::end() {
  std::vector<std::deque<Operation>> left;
  const Guard guard(mutex_);
  watcher_ = nullptr;
  for (StreamQueue* const stream : streams_) left.push_back(stream->take_all());
}

// One that waits for nobody else is none.
void Machine::tell_step(StreamStep::Kind kind, const StreamQueue& stream,
                        const std::shared_ptr<const OperationName>& operation) {
  if (!watcher_ || operation == nullptr) return;
  const bool is_own = operation->device == stream.device() && operation->stream == stream.id();
  if (kind == StreamStep::Kind::went_on && is_own) return;
  watcher_({.kind = kind,
            .device = stream.device(),
            .stream = stream.id(),
            .operation = operation->number,
            .name = operation->name});
}

void Machine::throw_if_failed(const OneDevice& one) const {
  TORCH_CHECK(one.failure.empty(), one.failure);
}

uint32_t Machine::choose(const char* decision, uint32_t n) {
  if (n <= 1) return 0;
  if (options_.choose) return options_.choose(decision, n) % n;
  return static_cast<uint32_t>((mixed(options_.seed, ++drawn_) >> 32) % n);
}

}  // namespace rehearsal::sim::device
