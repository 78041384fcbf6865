#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker_access.h"
#include "scenarios/storm/dice.h"

// Tensors that are changed in place when they have been sent. Of an argument, of a result and of a
// value of a stream arrives what it was when it was sent; or it is said that it was changed before
// that had arrived.
namespace rehearsal::grammar {

// The number of elements. Throws WrongResult if one of them is not one.
int64_t count_ones(const at::Tensor& ones);

// Ones, which it doubles in place.
class Keeper {
 public:
  explicit Keeper(int64_t size);
  at::Tensor ones() const { return ones_; }
  void overwrite();

 private:
  at::Tensor ones_;
};

// Twice the same tensor, of ones and then of twos.
void write_and_change(CallContext& context, StreamWriter<at::Tensor>& out, int64_t size);

// Sends a tensor, or has `to` send one, in one of these ways, and changes it after up to a
// millisecond. Parks until all is answered. Throws WrongResult if anything else arrives, and the
// RpcError of what fails for another reason. At this worker itself nothing is sent, and it does
// nothing.
void send_and_change(const WorkerAccess& here, WorkerId to, storm::Dice& dice);

void register_changed(FunctionRegistry& registry);

}  // namespace rehearsal::grammar
