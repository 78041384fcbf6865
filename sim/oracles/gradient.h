#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rehearsal::sim {

// The oracle of gradients: a barcode. Contribution j of a sum is 4^j, so that the sum tells by its
// digits to the base 4 which contributions it has, and how often. It is exact in a double, in any
// order of addition, which makes it the single-process reference as well.
inline constexpr size_t kBarcodeContributions = 26;

// REQUIRES: contribution < kBarcodeContributions.
[[nodiscard]] double barcode(size_t contribution);

// The faults of a sum that should have each of these contributions once; nothing if it has:
// "contribution 3 is missing, contribution 5 has come twice". A contribution that comes more than
// three times shows as others.
[[nodiscard]] std::optional<std::string> barcode_difference(const std::vector<size_t>& expected,
                                                            double sum);

}  // namespace rehearsal::sim
