#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/collectives/operation.h"

// How the members of a process group bring tensors together: the parcels of one operation, in
// steps. Every function parks, and throws RpcError. None changes a tensor that it is given.
//
// Small tensors go through a binomial tree: 2 (n − 1) parcels, 2 log n of them one after the other.
// Large ones go round a ring, in chunks that are cut into segments, so that each link carries no
// more than 2 (n − 1)/n of them, and segments follow each other. Which of both depends on the size
// alone, and so does the order in which elements are added.
namespace rehearsal {

using Tensors = std::vector<at::Tensor>;

// Up to so many bytes the tree is faster than the ring, and than to agree who carries them.
inline constexpr size_t kSmallBytes = size_t{64} << 10;

// Puts two parts of a reduction together into a tensor of their form, which may be one of them; the
// order of the parts counts. An average is a sum until it is completed.
void combine_into(at::Tensor& target, const at::Tensor& first, const at::Tensor& second,
                  ReduceOp op);
// Makes a reduction by `op` of so many parts its result, in its place.
void complete(at::Tensor& reduced, ReduceOp op, uint32_t count);

// At the root, the reduction; elsewhere nothing of use. Takes step 0.
[[nodiscard]] at::Tensor reduce_by_tree(Operation& operation, const at::Tensor& mine, uint32_t root,
                                        ReduceOp op);
// The root's tensors; those of the others only say their forms. Takes step 1, and of large tensors
// more.
[[nodiscard]] Tensors broadcast_by_tree(Operation& operation, const Tensors& mine, uint32_t root);

// The reduction of all members' vectors of one form, in pieces that follow each other.
[[nodiscard]] Tensors reduce_to_all(Operation& operation, const at::Tensor& vector, ReduceOp op);
// The reduction of all members' chunks[rank], which are vectors.
[[nodiscard]] at::Tensor reduce_and_scatter(Operation& operation, const Tensors& chunks,
                                            ReduceOp op);
// All members' tensors, of one form, by rank.
[[nodiscard]] Tensors gather_to_all(Operation& operation, const at::Tensor& mine);

}  // namespace rehearsal
