#pragma once

#include <optional>
#include <string>

#include "core/api/caller.h"

namespace rehearsal {

// The pieces of bytes that a worker keeps for its later lives, for code that runs there: each use
// is an event of the worker. Both block while the disk works. Both throw RpcError: of kind storage
// if the worker has no place for them or the disk fails, of kind bad_arguments for a name that
// cannot be one, of kind node_stopped when the node has ended.
void save_piece(const Caller& caller, const std::string& name, const std::string& bytes);
[[nodiscard]] std::optional<std::string> load_piece(const Caller& caller, const std::string& name);

}  // namespace rehearsal
