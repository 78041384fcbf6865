#pragma once

#include "core/api/recovery.h"
#include "core/base/checkpoints.h"

namespace rehearsal {

// Adds it to what `ended_lives` gives to later lives. Blocks while the disk works. A history
// that cannot be read is begun anew.
[[nodiscard]] Status add_ended_life(Checkpoints& disk, const EndedLife& ended);

}  // namespace rehearsal
