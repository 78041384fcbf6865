#include "real_net/worker/machine_lending.h"

#include <ATen/Functions.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

namespace rehearsal::real {
namespace {

// A place: that of the process, the machine's name, and a handle of memory of each device, in
// hexadecimal digits. Blanks stand between them.
constexpr char kBetween = '/';

// A ticket for another process; those of ProcessLending begin with a digit.
constexpr char kOfMachine = 'm';
// Memory begins at such a multiple, or the device might fail.
constexpr uint64_t kAlignment = 16;

// Another one after each start of the machine, the same in all of its containers.
std::string name_of_machine() {
  std::string name;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), name);
  return name;
}

constexpr std::string_view kDigits = "0123456789abcdef";

std::string in_digits(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

// Empty: these are no such digits.
std::string from_digits(std::string_view text) {
  if (text.size() % 2 != 0) return "";
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    const size_t high = kDigits.find(text[i]), low = kDigits.find(text[i + 1]);
    if (high == kDigits.npos || low == kDigits.npos) return "";
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::vector<std::string> parts_of(std::string_view place) {
  std::vector<std::string> parts;
  while (true) {
    const size_t end = place.find(kBetween);
    parts.emplace_back(place.substr(0, end));
    if (end == place.npos) return parts;
    place.remove_prefix(end + 1);
  }
}

std::string ticket_of(const IpcPlace& place) {
  std::string ticket(1 + sizeof place.offset, kOfMachine);
  std::memcpy(ticket.data() + 1, &place.offset, sizeof place.offset);
  return ticket + place.handle;
}

std::optional<IpcPlace> place_in(std::string_view ticket) {
  IpcPlace place;
  if (ticket.size() < 1 + sizeof place.offset || ticket[0] != kOfMachine) return std::nullopt;
  std::memcpy(&place.offset, ticket.data() + 1, sizeof place.offset);
  place.handle = ticket.substr(1 + sizeof place.offset);
  return place;
}

}  // namespace

MachineLending::MachineLending(std::shared_ptr<IpcMemory> ipc, const DevicesHere& devices,
                               uint64_t least_bytes)
    : ipc_(std::move(ipc)),
      devices_(devices),
      least_bytes_(least_bytes),
      process_(least_bytes),
      place_(process_.place()) {
  if (ipc_ == nullptr) return;
  std::string samples;
  for (int number = 0; number < devices_.count; ++number) {
    const c10::Device device = devices_.at(number);
    shared_for_trials_.push_back(at::empty({1}, at::TensorOptions(at::kByte).device(device)));
    const Result<IpcPlace> shared = ipc_->share(shared_for_trials_.back().const_data_ptr(), device);
    if (!shared.ok()) return;  // It lends within its process.
    samples += kBetween + in_digits(shared.value().handle);
  }
  place_ += kBetween + name_of_machine() + samples;
}

std::string MachineLending::place() const { return place_; }

void MachineLending::meet(WorkerId peer, const std::string& place) {
  const std::vector<std::string> here = parts_of(place_);
  std::vector<std::string> there = parts_of(place);
  process_.meet(peer, there[0]);
  const std::lock_guard lock(mutex_);
  neighbours_.erase(peer);
  const bool is_neighbour =
      there.size() > 2 && here.size() > 2 && there[0] != here[0] && there[1] == here[1];
  if (!is_neighbour) return;
  Neighbour& neighbour = neighbours_[peer];
  for (size_t i = 2; i < there.size(); ++i) neighbour.samples.push_back(from_digits(there[i]));
}

bool MachineLending::reaches(const std::vector<std::string>& samples) const {
  for (int number = 0; number < devices_.count; ++number)
    for (const std::string& sample : samples)
      if (!ipc_->map(sample, devices_.at(number)).ok()) return false;
  return true;
}

bool MachineLending::lends(WorkerId to, uint64_t bytes) const {
  if (bytes < least_bytes_) return false;
  if (process_.lends(to, bytes)) return true;
  std::vector<std::string> samples;
  {
    const std::lock_guard lock(mutex_);
    const auto found = neighbours_.find(to);
    if (found == neighbours_.end()) return false;
    if (found->second.is_reached) return *found->second.is_reached;
    samples = found->second.samples;
  }
  const bool is_reached = reaches(samples);
  const std::lock_guard lock(mutex_);
  // It may have come back elsewhere meanwhile.
  const auto found = neighbours_.find(to);
  if (found == neighbours_.end() || found->second.samples != samples) return false;
  found->second.is_reached = is_reached;
  return is_reached;
}

std::optional<Lent> MachineLending::lend(WorkerId to, const at::Tensor& tensor) {
  if (process_.lends(to, tensor.nbytes())) return process_.lend(to, tensor);
  const Result<IpcPlace> shared = ipc_->share(tensor.const_data_ptr(), tensor.device());
  if (!shared.ok() || shared.value().offset % kAlignment != 0) return std::nullopt;
  std::optional<Lent> lent = process_.lend(to, tensor);
  if (lent) lent->ticket = ticket_of(shared.value());
  return lent;
}

Result<IpcMapping> MachineLending::mapped(const std::string& handle, c10::Device device) {
  const std::pair key(handle, device.index());
  const std::lock_guard lock(mutex_);
  std::erase_if(mappings_, [](const auto& entry) { return entry.second.first.expired(); });
  if (const auto found = mappings_.find(key); found != mappings_.end())
    if (std::shared_ptr<void> begin = found->second.first.lock())
      return IpcMapping{.begin = std::move(begin), .bytes = found->second.second};
  Result<IpcMapping> mapping = ipc_->map(handle, device);
  if (mapping.ok()) mappings_[key] = {mapping.value().begin, mapping.value().bytes};
  return mapping;
}

Result<at::Tensor> MachineLending::borrow(std::string_view ticket, c10::IntArrayRef sizes,
                                          c10::ScalarType dtype, c10::Device to) {
  const std::optional<IpcPlace> place = place_in(ticket);
  if (!place) return process_.borrow(ticket, sizes, dtype, to);
  if (ipc_ == nullptr) return wrong_arguments("this process cannot map memory of others");
  Result<IpcMapping> mapping = mapped(place->handle, to);
  if (!mapping.ok()) return std::move(mapping.error());
  const uint64_t bytes = c10::multiply_integers(sizes) * c10::elementSize(dtype);
  const uint64_t all = mapping.value().bytes;
  if (place->offset % kAlignment != 0 || bytes > all || place->offset > all - bytes)
    return wrong_arguments("the loan is of another size");
  void* const data = static_cast<std::byte*>(mapping.value().begin.get()) + place->offset;
  return at::for_blob(data, sizes)
      .deleter([begin = std::move(mapping.value().begin)](void*) {})
      .options(at::TensorOptions(dtype).device(to))
      .target_device(to)
      .make_tensor();
}

}  // namespace rehearsal::real
