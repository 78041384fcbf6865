#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/worker.h"

namespace rehearsal::grammar {

// Has the named workers, of which this is one, meet as code does that is written against LibTorch's
// own interfaces: by keys in a c10d::Store, then by a c10d::ProcessGroup and a c10d::Backend. All
// call it with the same names and word. Parks. Throws RpcError, and WrongResult.
void meet_by_c10d(const Worker& worker, const std::vector<std::string>& names, uint64_t what);

}  // namespace rehearsal::grammar
