#include "sim/oracles/gradient.h"

#include <cmath>
#include <cstdint>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

constexpr unsigned kBitsOfDigit = 2;
constexpr double kSumsEnd = 4503599627370496.0;  // 4^26: every whole number below it is exact

std::string count_text(uint64_t digit, bool is_expected) {
  if (digit == 0) return "is missing";
  if (!is_expected) return "does not belong here";
  return digit == 2 ? "has come twice" : "has come three times";
}

}  // namespace

double barcode(size_t contribution) {
  REHEARSAL_CHECK(contribution < kBarcodeContributions, contribution);
  return std::ldexp(1.0, static_cast<int>(kBitsOfDigit * contribution));
}

std::optional<std::string> barcode_difference(const std::vector<size_t>& expected, double sum) {
  if (!(sum >= 0) || sum >= kSumsEnd || sum != std::floor(sum))
    return std::to_string(sum) + " is no sum of contributions";
  uint64_t due = 0;
  for (const size_t contribution : expected) due |= uint64_t{1} << (kBitsOfDigit * contribution);
  const auto digits = static_cast<uint64_t>(sum);
  std::string text;
  for (size_t j = 0; j < kBarcodeContributions; ++j) {
    const uint64_t digit = digits >> (kBitsOfDigit * j) & 3;
    const uint64_t due_digit = due >> (kBitsOfDigit * j) & 3;
    if (digit == due_digit) continue;
    text += (text.empty() ? "" : ", ") + std::string("contribution ") + std::to_string(j) + " " +
            count_text(digit, due_digit == 1);
  }
  if (text.empty()) return std::nullopt;
  return text;
}

}  // namespace rehearsal::sim
