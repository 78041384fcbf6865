#pragma once

#include <cstdint>

#include "core/api/call_context.h"
#include "core/api/worker.h"

namespace rehearsal::grammar {

// Has the worker do what all of them do together between two terms, drawn from the seed and the
// meeting's number, the same at all: gatherings and barriers of some workers, and collective
// operations in groups that overlap, one behind the other or several under way. Parks. Throws
// WrongResult, and RpcError: of a lost worker, or timeout where one that came back is in another
// meeting.
void meet(const Worker& worker, Seed seed, int64_t number);

// Has this worker work in process groups that follow from the word, as all others do.
void work_there(CallContext& context, int64_t word);

}  // namespace rehearsal::grammar
