#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace rehearsal::random_model {

// Whether type, shape and all bits are equal.
[[nodiscard]] bool same_bits(const at::Tensor& a, const at::Tensor& b);

// How `sum`, dense, differs from the sum of the terms in its own type, as Reference::difference
// says; nothing if it does not. An undefined tensor is the sum of no terms. Of `exact` terms no sum
// is rounded, and the sign of zero is left open. So it is for complex terms: LibTorch multiplies
// the second one by 1 + 0i before it adds it, which makes 0 of −0 where the other part is −0.
[[nodiscard]] std::optional<std::string> sum_difference(const at::Tensor& sum,
                                                        const std::vector<at::Tensor>& terms,
                                                        bool exact);

// For people: the first elements.
[[nodiscard]] std::string numbers_of(const at::Tensor& tensor);

}  // namespace rehearsal::random_model
