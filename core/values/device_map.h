#pragma once

#include <c10/core/Device.h>

#include <compare>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rehearsal {

// One of the devices of a worker, whatever their kind: cuda:1 and sim:1 are both number 1, so that
// one program runs on either. The CPU is one of them.
class DeviceNumber {
 public:
  static constexpr int kMax = 127;

  // All throw std::invalid_argument: for a number below 0 or above kMax, for a name that LibTorch
  // does not read ("cuda:1", "cpu"), for a device without an index that is not the CPU.
  DeviceNumber(int number);
  DeviceNumber(const char* name);
  DeviceNumber(c10::Device device);
  [[nodiscard]] static DeviceNumber cpu() { return DeviceNumber(Cpu{}); }

  [[nodiscard]] bool is_cpu() const { return number_ < 0; }
  // Of a device that is not the CPU.
  [[nodiscard]] int value() const { return number_; }
  // "cpu", "device 1"
  [[nodiscard]] std::string text() const;

  auto operator<=>(const DeviceNumber&) const = default;

 private:
  struct Cpu {};
  explicit DeviceNumber(Cpu) : number_(-1) {}
  int number_;
};

// To which devices of a peer tensors go that are on devices here: one to one, as in PyTorch. A
// tensor on the CPU stays there unless the map says otherwise.
//
//   DeviceMap{{0, 1}, {1, 0}};  DeviceMap{{"cuda:0", "cpu"}};
class DeviceMap {
 public:
  DeviceMap() = default;
  // Throws std::invalid_argument if a device goes to two.
  DeviceMap(std::initializer_list<std::pair<DeviceNumber, DeviceNumber>> entries);
  void add(DeviceNumber from, DeviceNumber to);

  // Empty: tensors there cannot be sent.
  [[nodiscard]] std::optional<DeviceNumber> at(DeviceNumber from) const;

  // Of what comes back. Only of a map of which no two devices go to one.
  [[nodiscard]] DeviceMap inverse() const;

  [[nodiscard]] const std::map<DeviceNumber, DeviceNumber>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  bool operator==(const DeviceMap&) const = default;

 private:
  std::map<DeviceNumber, DeviceNumber> entries_;
};

// The devices of one worker as it tells its peers: how many there are, which of them calls may use
// (empty: all), and the map for each peer by its name.
struct WorkerDevices {
  int count = 0;
  std::vector<DeviceNumber> declared;
  std::map<std::string, DeviceMap> maps;
  std::string lending;  // DeviceLending::place; empty: it neither lends nor borrows
  bool operator==(const WorkerDevices&) const = default;
};

// Whether both can use the map that `from` has for `to`; else why not, naming both workers, the
// device, and the mistake: two devices go to one, a device that there is none of, or one that is
// not declared, on either side.
[[nodiscard]] std::optional<std::string> mistake_in_map(const std::string& from_name,
                                                        const WorkerDevices& from,
                                                        const std::string& to_name,
                                                        const WorkerDevices& to);

// As one line of a greeting: "2;0,1;host 1;ps=0>1,cpu>0;". None: it is no such line.
[[nodiscard]] std::string to_text(const WorkerDevices& devices);
[[nodiscard]] std::optional<WorkerDevices> devices_from_text(std::string_view text);

}  // namespace rehearsal
