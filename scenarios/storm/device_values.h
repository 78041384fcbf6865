#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/api/batcher.h"
#include "scenarios/storm/functions.h"

// Values that live on devices, and functions that the workers of a storm call where there are any.
namespace rehearsal::storm {

// kFilled times this value, on a device of the worker or on the CPU, as the word says; it is there
// only when its stream has come so far.
at::Tensor filled(const WorkerAccess& worker, uint64_t word, double value);
inline constexpr int64_t kFilled = 64;

// A tensor that its methods change in place. One on a device they give away without a copy: that is
// made when they have returned.
class Cell {
 public:
  Cell(CallContext& context, double value, uint64_t word);
  void add(double number) { tensor_.add_(number); }
  // Twice, and somebody else may add meanwhile.
  at::Tensor add_around(CallContext& context, double number, const Journey& meanwhile);
  at::Tensor get() const { return tensor_.device().is_cpu() ? tensor_ * 1 : tensor_; }

 private:
  at::Tensor tensor_;
};

at::Tensor made_there(CallContext& context, double value, uint64_t word);
// Twice the tensor behind the reference.
at::Tensor fetched_twice(const RRef<at::Tensor>& reference);

// Reads it here, in streams of its own, for nobody.
void read_aside(const RRef<at::Tensor>& reference);

// Doubles tensors, several at once, in its own streams.
class DeviceDoubler {
 public:
  DeviceDoubler(CallContext& context, uint64_t word);
  Future<at::Tensor> twice(const at::Tensor& item) { return batcher_.add(item * 1); }

 private:
  at::Tensor two_;
  Batcher<at::Tensor, at::Tensor> batcher_;
};

// A worker's state: what its callers have put together, and tensors that it doubles for them,
// several at once.
class Pool {
 public:
  explicit Pool(Worker& worker);
  // Gives the sum as it is then. In the state's monitor.
  at::Tensor add(const at::Tensor& tensor);
  Future<at::Tensor> twice(const at::Tensor& item) { return batcher_.add(item); }

 private:
  at::Tensor sum_;
  Batcher<at::Tensor, at::Tensor> batcher_;
};
at::Tensor add_to_pool(CallContext& context, const at::Tensor& tensor);
// x · factor at each worker of the journey, asked for in the state's streams.
Future<at::Tensor> scale_in_pool(CallContext& context, const at::Tensor& x, double factor,
                                 const Journey& journey);
Future<at::Tensor> double_in_pool(CallContext& context, const at::Tensor& item);

// Lets wait until a tensor is brought.
class WaitingRoom {
 public:
  WaitingRoom() = default;
  Future<at::Tensor> take(CallContext& context);
  // To all who wait, and all who come later: twice this tensor.
  void bring(const at::Tensor& tensor);

 private:
  std::vector<Promise<at::Tensor>> waiting_;
  at::Tensor brought_;
};
// The room's owner waits in streams of its own.
Future<at::Tensor> take_from(CallContext& context, const RRef<WaitingRoom>& room);

void register_devices(FunctionRegistry& registry);

}  // namespace rehearsal::storm
