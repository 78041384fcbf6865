#pragma once

#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "core/values/value.h"

namespace rehearsal {

// Names a process group, the same at all of its members: a life of its first member, and the number
// of the group there. No two groups, of whichever lives, have the same.
struct GroupName {
  uint64_t founder = 0;
  uint64_t number = 0;
  auto operator<=>(const GroupName&) const = default;
  friend void describe(GroupName& name, auto&& fields) { fields(name.founder, name.number); }
};

// The place of a parcel among all that its receiver gets in the group.
struct ParcelSlot {
  bool between_two = false;  // of `send`, not of what all members do together
  uint64_t number = 0;       // of the operation; between two, the tag
  uint64_t step = 0;         // within the operation; between two, how many of that tag came before
  uint32_t source = 0;       // the rank that sends it
  auto operator<=>(const ParcelSlot&) const = default;
  friend void describe(ParcelSlot& slot, auto&& fields) {
    fields(slot.between_two, slot.number, slot.step, slot.source);
  }
};

// The tensors that one member of a process group gives another in an operation, and what this is,
// so that two who do not do the same find out.
struct Parcel {
  GroupName group;
  ParcelSlot slot;
  std::string operation;
  std::vector<at::Tensor> tensors;
  friend void describe(Parcel& parcel, auto&& fields) {
    fields(parcel.group, parcel.slot, parcel.operation, parcel.tensors);
  }
};

}  // namespace rehearsal
