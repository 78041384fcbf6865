#pragma once

#include <cstdint>
#include <stdexcept>

#include "core/api/call_context.h"
#include "core/api/worker.h"

namespace rehearsal::grammar {

// A worker that came back is in another meeting than the others.
class Elsewhere : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Has the worker do what all of them do together between two terms, drawn from the seed and the
// meeting's number, the same at all: gatherings and barriers of some workers, and collective
// operations in groups that overlap, one behind the other or several under way. Parks. Throws
// WrongResult; RpcError, of a lost worker, or timeout where one that came back does not come; and
// Elsewhere.
void meet(const Worker& worker, Seed seed, int64_t number);

// Longer than any worker that is not lost is late.
constexpr auto kPatience = std::chrono::seconds(300);

// Has this worker work in process groups that follow from the word, as all others do.
void work_there(CallContext& context, int64_t word);

}  // namespace rehearsal::grammar
