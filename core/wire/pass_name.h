#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal {

// How much a backward pass takes for granted.
enum class PassMode : uint8_t {
  // Nothing: it finds out by itself which of the tensors that crossed workers its roots depend on.
  smart,
  // That the roots depend on all of them: one that gets no gradient is an error that names it.
  fast,
};

// Names one backward pass.
struct PassId {
  AutogradContextId context;
  uint64_t epoch = 0;  // counts the passes that one life of one worker starts in the context
  Incarnation starter_incarnation;
  auto operator<=>(const PassId&) const = default;
};

// So many passes of one starter in a context may have failed after somebody had kept their
// gradients. With more it starts none.
inline constexpr size_t kTakenBackMax = 4096;

// A pass, as each of its messages names it: everybody passes on what the starter said.
struct PassName {
  PassId id;
  WorkerId starter;
  bool retain_graph = false;
  bool create_graph = false;
  PassMode mode = PassMode::smart;
  WorkerId context_creator;
  // Of the passes of the same starter in the context, those with a lower epoch have ended …
  uint64_t settled = 0;
  // … and of these, those that failed after somebody may have kept their gradients: no more than
  // kTakenBackMax.
  std::vector<uint64_t> taken_back;
  bool operator==(const PassName&) const = default;
};

}  // namespace rehearsal
