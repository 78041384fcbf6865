#include "core/values/device_map.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <stdexcept>

namespace rehearsal {
namespace {

c10::Device device_named(const char* name) {
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {
    throw std::invalid_argument("'" + std::string(name) + "' is no device");
  }
}

bool is_declared(const WorkerDevices& devices, DeviceNumber device) {
  return device.is_cpu() || devices.declared.empty() ||
         std::ranges::find(devices.declared, device) != devices.declared.end();
}

// Why a worker has not such a device for its calls; empty: it has.
std::string why_not(const std::string& name, const WorkerDevices& devices, DeviceNumber device) {
  if (!device.is_cpu() && device.value() >= devices.count)
    return "worker '" + name + "' has no " + device.text() + ": it has " +
           std::to_string(devices.count);
  if (!is_declared(devices, device))
    return device.text() + " is not among the devices that worker '" + name + "' has declared";
  return "";
}

std::string short_text(DeviceNumber device) {
  return device.is_cpu() ? "cpu" : std::to_string(device.value());
}

std::optional<int> number_in(std::string_view text, int max) {
  int number = -1;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end || number < 0 || number > max) return std::nullopt;
  return number;
}

std::optional<DeviceNumber> device_in(std::string_view text) {
  if (text == "cpu") return DeviceNumber::cpu();
  const std::optional<int> number = number_in(text, DeviceNumber::kMax);
  if (!number) return std::nullopt;
  return DeviceNumber(*number);
}

// The text before the separator, which is taken off with it.
std::string_view take_until(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::optional<DeviceMap> map_in(std::string_view text) {
  DeviceMap map;
  while (!text.empty()) {
    std::string_view entry = take_until(text, ',');
    const std::optional<DeviceNumber> from = device_in(take_until(entry, '>'));
    const std::optional<DeviceNumber> to = device_in(entry);
    if (!from || !to || map.entries().contains(*from)) return std::nullopt;
    map.add(*from, *to);
  }
  return map;
}

}  // namespace

DeviceNumber::DeviceNumber(int number) : number_(number) {
  if (number < 0 || number > kMax)
    throw std::invalid_argument("a device has a number from 0 to " + std::to_string(kMax) +
                                ", not " + std::to_string(number));
}

DeviceNumber::DeviceNumber(const char* name) : DeviceNumber(device_named(name)) {}

DeviceNumber::DeviceNumber(c10::Device device) : number_(-1) {
  if (device.is_cpu()) return;
  if (!device.has_index())
    throw std::invalid_argument("'" + device.str() + "' does not say which: write " + device.str() +
                                ":0");
  number_ = device.index();
}

std::string DeviceNumber::text() const {
  return is_cpu() ? "cpu" : "device " + std::to_string(number_);
}

DeviceMap::DeviceMap(std::initializer_list<std::pair<DeviceNumber, DeviceNumber>> entries) {
  for (const auto& [from, to] : entries) add(from, to);
}

void DeviceMap::add(DeviceNumber from, DeviceNumber to) {
  const auto [found, is_new] = entries_.emplace(from, to);
  if (!is_new && found->second != to)
    throw std::invalid_argument("a device map is one to one: " + from.text() + " goes to " +
                                found->second.text() + " already, and not to " + to.text());
}

std::optional<DeviceNumber> DeviceMap::at(DeviceNumber from) const {
  if (const auto found = entries_.find(from); found != entries_.end()) return found->second;
  if (from.is_cpu()) return from;
  return std::nullopt;
}

DeviceMap DeviceMap::inverse() const {
  DeviceMap inverse;
  for (const auto& [from, to] : entries_) inverse.add(to, from);
  return inverse;
}

std::optional<std::string> mistake_in_map(const std::string& from_name, const WorkerDevices& from,
                                          const std::string& to_name, const WorkerDevices& to) {
  const auto map = from.maps.find(to_name);
  if (map == from.maps.end()) return std::nullopt;
  const std::string of_map =
      "the device map of worker '" + from_name + "' for worker '" + to_name + "' cannot be used: ";
  std::map<DeviceNumber, DeviceNumber> sources;
  for (const auto& [source, target] : map->second.entries()) {
    const auto [other, is_new] = sources.emplace(target, source);
    if (!is_new)
      return of_map + "it is not one to one: " + other->second.text() + " and " + source.text() +
             " both go to " + target.text();
    if (std::string why = why_not(from_name, from, source); !why.empty()) return of_map + why;
    if (std::string why = why_not(to_name, to, target); !why.empty()) return of_map + why;
  }
  return std::nullopt;
}

std::string to_text(const WorkerDevices& devices) {
  std::string text = std::to_string(devices.count) + ";";
  for (const DeviceNumber device : devices.declared) text += short_text(device) + ",";
  if (!devices.declared.empty()) text.pop_back();
  text += ";" + devices.lending + ";";
  for (const auto& [peer, map] : devices.maps) {
    text += peer + "=";
    for (const auto& [from, to] : map.entries())
      text += short_text(from) + ">" + short_text(to) + ",";
    if (!map.empty()) text.pop_back();
    text += ";";
  }
  return text;
}

std::optional<WorkerDevices> devices_from_text(std::string_view text) {
  WorkerDevices devices;
  if (!text.ends_with(';') || std::ranges::count(text, ';') < 3) return std::nullopt;
  const std::optional<int> count = number_in(take_until(text, ';'), DeviceNumber::kMax + 1);
  if (!count) return std::nullopt;
  devices.count = *count;
  for (std::string_view declared = take_until(text, ';'); !declared.empty();) {
    const std::optional<DeviceNumber> device = device_in(take_until(declared, ','));
    if (!device) return std::nullopt;
    devices.declared.push_back(*device);
  }
  devices.lending = take_until(text, ';');
  while (!text.empty()) {
    std::string_view of_peer = take_until(text, ';');
    const std::string peer(take_until(of_peer, '='));
    std::optional<DeviceMap> map = map_in(of_peer);
    if (peer.empty() || !map || !devices.maps.emplace(peer, *std::move(map)).second)
      return std::nullopt;
  }
  return devices;
}

}  // namespace rehearsal
