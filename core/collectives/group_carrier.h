#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "core/api/parcel.h"
#include "core/api/process_group.h"
#include "core/base/error.h"
#include "core/base/time.h"
#include "core/base/unique_function.h"

namespace rehearsal {

// An operation of all members of a process group, as it is given to a carrier. Tensors are
// contiguous, in host memory, and nobody else uses them meanwhile.
struct CarriedOperation {
  enum class Kind : uint8_t {
    open,            // the members find each other: once, before all others
    all_reduce,      // outputs[0], in place
    broadcast,       // outputs[0]; of the root it is read only
    all_gather,      // outputs[rank], from inputs[0]
    reduce_scatter,  // outputs[0], from inputs[rank]
  };
  Kind kind = Kind::open;
  ReduceOp op = ReduceOp::sum;  // no average
  uint32_t root = 0;
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> inputs;
  Duration time{};  // it may take; zero: for ever
};

// Brings the large tensors of one process group together in another way than by parcels, at one
// member. All members have a carrier of the same making.
class GroupCarrier {
 public:
  virtual ~GroupCarrier() = default;  // gives up; never blocks

  // Begins it, when those that were started before have ended; all members start the same, in the
  // same order. Never blocks. `done` is called once from any thread, with why it failed, if so;
  // then nothing more can be carried, and nothing that was started later is told of.
  virtual void start(CarriedOperation operation, UniqueFunction<void(MaybeError)> done) = 0;

  // The group has failed: nobody waits for anything any more. Never blocks. Any thread.
  virtual void give_up() = 0;
};

// The carriers of one node's process groups.
class GroupCarriers {
 public:
  struct Group {
    GroupName name;  // no two groups have the same, of whichever lives
    uint32_t rank = 0;
    uint32_t size = 0;
  };
  virtual ~GroupCarriers() = default;

  // Whether such operations are carried; the same at all members. Large ones only are asked for.
  [[nodiscard]] virtual bool carries(CarriedOperation::Kind kind, ReduceOp op,
                                     c10::ScalarType type) const = 0;
  [[nodiscard]] virtual std::unique_ptr<GroupCarrier> make(const Group& group) = 0;
};

}  // namespace rehearsal
