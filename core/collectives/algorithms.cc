#include "core/collectives/algorithms.h"

#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>

#include <functional>
#include <utility>

namespace rehearsal {
namespace {

// A parcel of the ring: large enough to cost little, small enough for the next to follow soon.
constexpr size_t kSegmentBytes = size_t{256} << 10;

bool is_small(const at::Tensor& tensor) { return tensor.nbytes() <= kSmallBytes; }

// The vector in segments; none if it is empty.
Tensors segments_of(const at::Tensor& vector) {
  if (vector.numel() == 0) return {};
  return vector.split(static_cast<int64_t>(kSegmentBytes / vector.element_size()));
}

at::Tensor joined(const Tensors& segments, const at::Tensor& like) {
  if (segments.empty()) return like;
  return segments.size() == 1 ? segments.front() : at::cat(segments);
}

// Steps of the ring: a round, and a segment in it.
constexpr uint64_t step_of(uint64_t round, uint64_t segment) { return (round << 32) + segment; }

// Called with a segment of the chunk that is complete here, and its number.
using WhenComplete = std::function<void(uint64_t segment, const at::Tensor& reduced)>;

// The chunk `last` is complete at rank 0, the one after it at rank 1, … Takes rounds 0 … n − 2.
void reduce_round_the_ring(Operation& operation, const std::vector<Tensors>& chunks, uint32_t last,
                           ReduceOp op, const WhenComplete& when_complete) {
  const uint32_t size = operation.size();
  const uint32_t right = (operation.rank() + 1) % size;
  const uint32_t left = (operation.rank() + size - 1) % size;
  // In round r a member gives the chunk that is complete n − 1 − r members further on.
  const auto given_in = [&](uint32_t round) {
    return (operation.rank() + last + size - 1 - round) % size;
  };
  const Tensors& first = chunks[given_in(0)];
  for (size_t i = 0; i < first.size(); ++i) operation.send(right, step_of(0, i), {first[i]});
  for (uint32_t round = 0; round + 1 < size; ++round) {
    const Tensors& mine = chunks[given_in(round + 1)];
    for (size_t i = 0; i < mine.size(); ++i) {
      // Nobody else has the tensor that was received: the sum takes its place.
      at::Tensor sum = operation.receive(left, step_of(round, i), {mine[i]}).front();
      combine_into(sum, sum, mine[i], op);
      if (round + 2 < size) {
        operation.send(right, step_of(round + 1, i), {sum});
      } else {
        complete(sum, op, size);
        when_complete(i, sum);
      }
    }
  }
}

// In the tree whose root is `root`, this member's number.
uint32_t place_in_tree(const Operation& operation, uint32_t root) {
  return (operation.rank() + operation.size() - root) % operation.size();
}
uint32_t rank_at(const Operation& operation, uint32_t place, uint32_t root) {
  return (place + root) % operation.size();
}

}  // namespace

void combine_into(at::Tensor& target, const at::Tensor& first, const at::Tensor& second,
                  ReduceOp op) {
  switch (op) {
    case ReduceOp::product:
      at::mul_out(target, first, second);
      return;
    case ReduceOp::min:
      at::minimum_out(target, first, second);
      return;
    case ReduceOp::max:
      at::maximum_out(target, first, second);
      return;
    case ReduceOp::sum:
    case ReduceOp::average:
      at::add_out(target, first, second);
  }
}

void complete(at::Tensor& reduced, ReduceOp op, uint32_t count) {
  if (op == ReduceOp::average) reduced.div_(static_cast<int64_t>(count));
}

at::Tensor reduce_by_tree(Operation& operation, const at::Tensor& mine, uint32_t root,
                          ReduceOp op) {
  const uint32_t size = operation.size();
  const uint32_t place = place_in_tree(operation, root);
  at::Tensor sum = mine;
  for (uint32_t reach = 1; reach < size; reach *= 2) {
    if ((place & reach) != 0) {
      operation.send(rank_at(operation, place - reach, root), 0, {sum});
      return sum;
    }
    if (place + reach >= size) continue;
    at::Tensor theirs =
        operation.receive(rank_at(operation, place + reach, root), 0, {mine}).front();
    combine_into(theirs, sum, theirs, op);
    sum = theirs;
  }
  if (size > 1) complete(sum, op, size);
  return sum;
}

Tensors broadcast_by_tree(Operation& operation, const Tensors& mine, uint32_t root) {
  const uint32_t size = operation.size();
  const uint32_t place = place_in_tree(operation, root);
  uint32_t reach = 1;
  while (reach < size && (place & reach) == 0) reach *= 2;
  // Large tensors are passed on piece by piece.
  const bool is_pieced = mine.size() == 1 && mine.front().nbytes() > kSegmentBytes;
  const at::Tensor vector = is_pieced ? mine.front().reshape(-1) : at::Tensor();
  const Tensors pieces = is_pieced ? segments_of(vector) : Tensors();
  const size_t parcels = is_pieced ? pieces.size() : 1;
  Tensors all;
  for (size_t i = 0; i < parcels; ++i) {
    const Tensors own = is_pieced ? Tensors{pieces[i]} : mine;
    const Tensors parcel =
        place == 0 ? own : operation.receive(rank_at(operation, place - reach, root), 1 + i, own);
    for (uint32_t child = reach / 2; child > 0; child /= 2)
      if (place + child < size)
        operation.send(rank_at(operation, place + child, root), 1 + i, parcel);
    if (!is_pieced) return parcel;
    all.push_back(parcel.front());
  }
  return {at::cat(all).view(mine.front().sizes())};
}

Tensors reduce_to_all(Operation& operation, const at::Tensor& vector, ReduceOp op) {
  const uint32_t size = operation.size();
  if (size == 1) return {vector};
  if (is_small(vector))
    return broadcast_by_tree(operation, {reduce_by_tree(operation, vector, 0, op)}, 0);

  const uint32_t right = (operation.rank() + 1) % size;
  const uint32_t left = (operation.rank() + size - 1) % size;
  std::vector<Tensors> chunks;
  for (const at::Tensor& chunk : vector.tensor_split(size)) chunks.push_back(segments_of(chunk));
  std::vector<Tensors> reduced(size);
  const uint32_t own = (operation.rank() + 1) % size;
  // The second time round begins where the first ends, segment by segment.
  reduce_round_the_ring(operation, chunks, 1, op, [&](uint64_t i, const at::Tensor& sum) {
    reduced[own].push_back(sum);
    operation.send(right, step_of(size - 1, i), {sum});
  });
  for (uint32_t round = 0; round + 1 < size; ++round) {
    const uint32_t chunk = (operation.rank() + size - round) % size;
    for (size_t i = 0; i < chunks[chunk].size(); ++i) {
      const Tensors sum = operation.receive(left, step_of(size - 1 + round, i), {chunks[chunk][i]});
      if (round + 2 < size) operation.send(right, step_of(size + round, i), sum);
      reduced[chunk].push_back(sum.front());
    }
  }
  Tensors all;
  for (const Tensors& segments : reduced) all.insert(all.end(), segments.begin(), segments.end());
  return all;
}

at::Tensor reduce_and_scatter(Operation& operation, const Tensors& chunks, ReduceOp op) {
  const uint32_t size = operation.size();
  const at::Tensor& own = chunks[operation.rank()];
  if (size == 1) return own;
  if (own.nbytes() * size <= kSmallBytes) {
    const at::Tensor sums = reduce_by_tree(operation, at::stack(chunks), 0, op);
    if (operation.rank() != 0) return operation.receive(0, 1, {own}).front();
    for (uint32_t rank = 1; rank < size; ++rank) operation.send(rank, 1, {sums[rank]});
    return sums[0];
  }
  std::vector<Tensors> segments;
  for (const at::Tensor& chunk : chunks) segments.push_back(segments_of(chunk));
  Tensors reduced;
  reduce_round_the_ring(operation, segments, 0, op,
                        [&](uint64_t, const at::Tensor& sum) { reduced.push_back(sum); });
  return joined(reduced, own);
}

Tensors gather_to_all(Operation& operation, const at::Tensor& mine) {
  const uint32_t size = operation.size();
  Tensors all(size, mine);
  if (size == 1) return all;
  if (mine.nbytes() * size <= kSmallBytes) {
    if (operation.rank() != 0) {
      operation.send(0, 0, {mine});
    } else {
      for (uint32_t rank = 1; rank < size; ++rank)
        all[rank] = operation.receive(rank, 0, {mine}).front();
    }
    return broadcast_by_tree(operation, all, 0);
  }
  const uint32_t right = (operation.rank() + 1) % size;
  const uint32_t left = (operation.rank() + size - 1) % size;
  operation.send(right, 0, {mine});
  for (uint32_t round = 0; round + 1 < size; ++round) {
    at::Tensor& theirs = all[(left + size - round) % size];
    theirs = operation.receive(left, round, {mine}).front();
    if (round + 2 < size) operation.send(right, round + 1, {theirs});
  }
  return all;
}

}  // namespace rehearsal
