#include "scenarios/text/batches.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <string>

#include "command_line/wrong_use.h"

namespace rehearsal::text {

at::Tensor lay_out(const std::vector<int64_t>& ids, int64_t columns) {
  const int64_t length = static_cast<int64_t>(ids.size()) / columns;
  if (length < 2) {
    throw WrongUse("a text of " + std::to_string(ids.size()) + " words is too short for " +
                   std::to_string(columns) + " columns; use a longer text or fewer columns");
  }
  at::Tensor rows = at::empty({length, columns}, at::kLong);
  auto cells = rows.accessor<int64_t, 2>();
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < length; ++row) {
      cells[row][column] = ids[static_cast<size_t>(column * length + row)];
    }
  }
  return rows;
}

at::Tensor columns_of_part(const at::Tensor& rows, int64_t part, int64_t count) {
  const int64_t width = rows.size(1) / count;
  return rows.slice(1, part * width, (part + 1) * width).contiguous();
}

std::vector<Batch> make_batches(const at::Tensor& rows, int64_t steps) {
  std::vector<Batch> batches;
  for (int64_t first = 0; first + 1 < rows.size(0); first += steps) {
    const int64_t last = std::min(first + steps, rows.size(0) - 1);
    batches.push_back({rows.slice(0, first, last), rows.slice(0, first + 1, last + 1)});
  }
  return batches;
}

}  // namespace rehearsal::text
