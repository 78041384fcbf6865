#include "scenarios/random_model/sums.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace rehearsal::random_model {
namespace {

constexpr int64_t kShown = 6;  // for people

// Real numbers, in order; a complex one is two.
at::Tensor as_doubles(const at::Tensor& tensor) {
  at::Tensor real = tensor.detach();
  if (real.is_complex()) real = at::view_as_real(real.resolve_conj());
  return real.to(at::kDouble).contiguous();
}

struct Precision {
  int digits;        // of the mantissa, without the leading one
  int exponent_min;  // of the least normal number
};

Precision precision_of(at::ScalarType type) {
  switch (type) {
    case at::kHalf:
      return {10, -14};
    case at::kBFloat16:
      return {7, -126};
    case at::kFloat:
    case at::kComplexFloat:
      return {23, -126};
    default:
      return {52, -1022};
  }
}

// Of numbers as large as this one.
double ulp_of(double size, Precision precision) {
  int exponent = precision.exponent_min;
  if (size > 0) exponent = std::max(std::ilogb(size), exponent);
  return std::ldexp(1.0, exponent - precision.digits);
}

// A sum that keeps what rounding takes away.
class CompensatedSum {
 public:
  void add(double term) {
    const double next = sum_ + term;
    if (std::abs(sum_) >= std::abs(term))
      lost_ += (sum_ - next) + term;
    else
      lost_ += (term - next) + sum_;
    sum_ = next;
    size_ += std::abs(term);
  }
  [[nodiscard]] double value() const { return sum_ + lost_; }
  [[nodiscard]] double size() const { return size_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
  double size_ = 0;
};

std::optional<std::string> rounded_difference(const at::Tensor& sum,
                                              const std::vector<at::Tensor>& terms) {
  const at::Tensor found = as_doubles(sum);
  std::vector<at::Tensor> doubles;
  for (const at::Tensor& term : terms) doubles.push_back(as_doubles(term));
  const Precision precision = precision_of(sum.scalar_type());
  for (int64_t i = 0; i < found.numel(); ++i) {
    CompensatedSum expected;
    for (const at::Tensor& term : doubles) expected.add(term.data_ptr<double>()[i]);
    const double allowed = static_cast<double>(terms.size() - 1) / 2;
    const double error = std::abs(found.data_ptr<double>()[i] - expected.value());
    const double ulp = ulp_of(expected.size(), precision);
    if (error > allowed * ulp || std::isnan(error))
      return "its element " + std::to_string(i) + " is " +
             std::to_string(found.data_ptr<double>()[i]) + ", " + std::to_string(error / ulp) +
             " ulp from " + std::to_string(expected.value()) + ", more than " +
             std::to_string(allowed);
  }
  return std::nullopt;
}

// Where that may be more than numbers_of shows. Of tensors of one type and shape.
std::string first_difference(const at::Tensor& found, const at::Tensor& expected) {
  const at::Tensor left = as_doubles(found).flatten(), right = as_doubles(expected).flatten();
  for (int64_t i = 0; left.numel() > kShown && i < left.numel(); ++i) {
    const double a = left.data_ptr<double>()[i], b = right.data_ptr<double>()[i];
    if (std::memcmp(&a, &b, sizeof a) == 0) continue;
    char text[96];
    std::snprintf(text, sizeof text, ": element %ld is %.17g, not %.17g", static_cast<long>(i), a,
                  b);
    return text;
  }
  return {};
}

}  // namespace

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor left = a.detach().contiguous().resolve_conj();
  const at::Tensor right = b.detach().contiguous().resolve_conj();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

std::optional<std::string> sum_difference(const at::Tensor& sum,
                                          const std::vector<at::Tensor>& terms, bool exact) {
  if (terms.empty()) {
    if (!sum.defined()) return std::nullopt;
    return "it is " + numbers_of(sum) + " though nothing contributes to it";
  }
  if (!sum.defined()) return "there is none";
  at::Tensor expected = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) expected = expected + terms[i];
  const bool sign_is_open = exact || expected.is_complex();
  if (sign_is_open ? same_bits(sum + 0, expected + 0) : same_bits(sum, expected))
    return std::nullopt;
  if (sum.scalar_type() != expected.scalar_type() || sum.sizes() != expected.sizes())
    return "it has another type or shape";
  if (terms.size() > 2 && !exact) return rounded_difference(sum, terms);
  return "it is " + numbers_of(sum) + ", not " + numbers_of(expected) +
         first_difference(sum, expected);
}

std::string numbers_of(const at::Tensor& tensor) {
  const at::Tensor numbers = as_doubles(tensor).flatten();
  std::string text = "[";
  for (int64_t i = 0; i < std::min(numbers.numel(), kShown); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, "%s%.17g", i == 0 ? "" : ", ",
                  numbers.data_ptr<double>()[i]);
    text += number;
  }
  return text + (numbers.numel() > kShown ? ", …]" : "]");
}

}  // namespace rehearsal::random_model
