#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/checkpoint/checkpoint_desk.h"

// The functions that a DistributedCheckpoint calls at the workers that have a part, and these at
// each other. Each is the desk's method of its name.
namespace rehearsal::checkpoint_orders {

HeldCheckpoints held(CallContext& call, const std::string& name);
void open(CallContext& call, const CheckpointOpening& opening);
void close(CallContext& call, const CheckpointOrder& order);
std::vector<c10::IValue> pieces(CallContext& call, const CheckpointOrder& order,
                                const std::vector<std::string>& names);
void keep_tensor(CallContext& call, const CheckpointOrder& order, const std::string& name,
                 const RRef<at::Tensor>& tensor);
std::vector<std::string> load_tensor(CallContext& call, const CheckpointOrder& order,
                                     const std::string& name, const RRef<at::Tensor>& tensor);
void write(CallContext& call, const CheckpointOrder& order, const std::vector<std::string>& holders,
           const CheckpointTag& committed);
void commit(CallContext& call, const CheckpointOrder& order);

}  // namespace rehearsal::checkpoint_orders
