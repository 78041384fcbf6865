#pragma once

namespace rehearsal {

// Stands in a worker's states for those that have ended, so that whoever asks for one is told so.
struct EndedStates {};

}  // namespace rehearsal
