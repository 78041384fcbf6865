// A text as batches for truncated backpropagation through time.
//
// The text is laid out as `columns` texts side by side, each a consecutive part of the whole; a
// batch is the next `steps` rows. A remainder that does not fill a row is left out. Trainers share
// the columns: each takes an equal, consecutive part of them, so that all trainers together see
// what one trainer would.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace rehearsal::text {

struct Batch {
  at::Tensor inputs;   // int64, {rows, columns}
  at::Tensor targets;  // int64, {rows, columns}: the word after each input
};

// The text as {rows, columns}, int64.
at::Tensor lay_out(const std::vector<int64_t>& ids, int64_t columns);

// An equal part of the columns. REQUIRES: `count` divides their number.
at::Tensor columns_of_part(const at::Tensor& rows, int64_t part, int64_t count);

// The batches of one pass over the rows, in order; the last may have fewer than `steps` rows.
std::vector<Batch> make_batches(const at::Tensor& rows, int64_t steps);

}  // namespace rehearsal::text
