#include "core/values/device_table.h"

#include <algorithm>
#include <utility>

namespace rehearsal {

namespace {

// Calls to oneself leave each device that calls may use where it is, unless a map says otherwise.
WorkerDevices with_map_to_itself(WorkerDevices own, const std::string& self) {
  if (own.count == 0 || own.maps.find(self) != own.maps.end()) return own;
  DeviceMap same;
  for (int i = 0; i < own.count; ++i)
    if (own.declared.empty() || std::ranges::count(own.declared, DeviceNumber(i)) > 0)
      same.add(i, i);
  own.maps.emplace(self, std::move(same));
  return own;
}

}  // namespace

DeviceTable::DeviceTable(std::vector<std::string> names, WorkerId self, WorkerDevices own)
    : names_(std::move(names)),
      self_(self),
      own_(with_map_to_itself(std::move(own), names_[self.value])),
      to_(names_.size()),
      answers_(names_.size()) {
  for (size_t id = 0; id < names_.size(); ++id)
    if (const auto map = own_.maps.find(names_[id]); map != own_.maps.end()) to_[id] = &map->second;
  own_mistake_ = mistake_of(names_[self_.value], own_);
  if (!own_mistake_)
    own_mistake_ = mistake_in_map(names_[self_.value], own_, names_[self_.value], own_);
  if (!own_mistake_) learn(self_, own_);
}

std::optional<std::string> DeviceTable::mistake_of(const std::string& name,
                                                   const WorkerDevices& devices) const {
  for (const auto& [peer, map] : devices.maps)
    if (std::find(names_.begin(), names_.end(), peer) == names_.end())
      return "the device map of worker '" + name + "' for worker '" + peer +
             "' cannot be used: there is no worker of this name";
  return std::nullopt;
}

std::optional<std::string> DeviceTable::mistake_with(WorkerId peer,
                                                     const WorkerDevices& theirs) const {
  const std::string& self = names_[self_.value];
  const std::string& other = names_[peer.value];
  if (auto mistake = mistake_of(other, theirs)) return mistake;
  if (auto mistake = mistake_in_map(self, own_, other, theirs)) return mistake;
  return mistake_in_map(other, theirs, self, own_);
}

void DeviceTable::learn(WorkerId peer, const WorkerDevices& theirs) {
  const auto map = theirs.maps.find(names_[self_.value]);
  answers_[peer.value] =
      map == theirs.maps.end() ? nullptr : std::make_shared<const DeviceMap>(map->second.inverse());
}

}  // namespace rehearsal
