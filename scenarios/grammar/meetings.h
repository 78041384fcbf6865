#pragma once

#include <cstdint>

#include "core/api/worker.h"

namespace rehearsal::grammar {

// What the workers do together between two terms, drawn from the seed and the meeting's number, the
// same at all of them: gatherings and barriers of some workers, and collective operations in groups
// that overlap, one behind the other or several under way. Parks. Throws WrongResult, and RpcError:
// of a lost worker, or timeout where one that came back is in another meeting.
void meet(const Worker& worker, Seed seed, int64_t number);

}  // namespace rehearsal::grammar
