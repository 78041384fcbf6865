#pragma once

#include <string_view>

#include "core/base/ids.h"

namespace rehearsal::sim {

// The first seed of a search that follows from a commit: another part of the space with every
// commit, the same for everyone who has that commit. It is the number that the first seven
// hexadecimal digits of the id are, so that the short and the long form of an id agree.
// Throws std::invalid_argument with a line that says what to give if `id` has fewer than seven
// digits, more than 64, or anything else in it.
[[nodiscard]] Seed seed_of_commit(std::string_view id);

}  // namespace rehearsal::sim
