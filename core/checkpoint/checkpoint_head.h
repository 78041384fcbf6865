#pragma once

#include <ATen/core/ivalue.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/api/checkpoint_parts.h"

namespace rehearsal {

// One worker's part of a cut, as a file of it says.
struct CheckpointCopy {
  CheckpointTag tag;
  std::vector<std::string> holders;  // all workers that have a part
  std::vector<std::string> pieces;   // those of this part
  friend void describe(CheckpointCopy& copy, auto&& fields) {
    fields(copy.tag, copy.holders, copy.pieces);
  }
};

// The things that a worker knows of a checkpoint: at most two cuts, in two places that are written
// in turn, and the last one of which it has heard that all its holders have it.
struct CheckpointHead {
  static constexpr size_t kSlots = 2;

  CheckpointTag committed;  // run zero: none
  std::array<std::optional<CheckpointCopy>, kSlots> slots;

  // The place of this cut, if it is here.
  [[nodiscard]] std::optional<size_t> slot_of(const CheckpointTag& tag) const;
  // The place for a new cut: never that of `committed`.
  [[nodiscard]] size_t next_slot() const;
};

// As a file that Python reads, and back. Throws c10::Error or std::exception for a value that is
// none.
[[nodiscard]] c10::IValue to_ivalue(const CheckpointHead& head);
[[nodiscard]] CheckpointHead checkpoint_head(const c10::IValue& value);

// The tag of a file of pieces.
[[nodiscard]] CheckpointTag tag_in(const c10::impl::GenericDict& content);

[[nodiscard]] c10::impl::GenericDict any_dictionary();
[[nodiscard]] c10::IValue list_of(const std::vector<std::string>& texts);

}  // namespace rehearsal
