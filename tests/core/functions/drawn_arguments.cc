#include "tests/core/functions/drawn_arguments.h"

#include <ATen/Functions.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>

namespace rehearsal {
namespace {

// The facts that the tensors of one call have in common while the draw is a good one.
struct Common {
  std::vector<int64_t> sizes;
  c10::ScalarType type;
};

template <class T>
const T& one_of(Draw& draw, const std::vector<T>& all) {
  return all[draw.below(all.size())];
}

const std::vector<std::vector<int64_t>>& all_sizes() {
  static const std::vector<std::vector<int64_t>> sizes = {{},
                                                          {0},
                                                          {1},
                                                          {3},
                                                          {4, 4},
                                                          {2, 3},
                                                          {3, 3},
                                                          {2, 0, 3},
                                                          {8},
                                                          {2, 6},
                                                          {2, 3, 4},
                                                          {2, 4, 4},
                                                          {1, 3, 4, 4},
                                                          {2, 4, 6, 6},
                                                          {2, 2, 3, 4, 4},
                                                          {0, 3, 4, 4},
                                                          {1, 1},
                                                          {int64_t{1} << 33, 0},
                                                          {0, int64_t{1} << 20},
                                                          {5, 1, 1},
                                                          {1, 2, 1, 1, 1, 1}};
  return sizes;
}

const std::vector<c10::ScalarType>& all_types() {
  static const std::vector<c10::ScalarType> types = {
      c10::kFloat, c10::kFloat,         c10::kDouble,        c10::kLong,
      c10::kLong,  c10::kInt,           c10::kBool,          c10::kByte,
      c10::kShort, c10::kComplexFloat,  c10::kHalf,          c10::kBFloat16,
      c10::kChar,  c10::kFloat8_e4m3fn, c10::kComplexDouble, c10::kUInt16};
  return types;
}

at::Tensor drawn_values(Draw& draw, const Common& common, int badness) {
  int64_t count = 1;
  for (const int64_t size : common.sizes) count *= size;
  const bool is_whole = !at::isFloatingType(common.type) && !at::isComplexType(common.type);
  const at::Tensor plain = at::zeros({count}, is_whole ? c10::kLong : c10::kDouble);
  for (int64_t i = 0; i < count; ++i)
    if (is_whole)
      plain.data_ptr<int64_t>()[i] = drawn_integer(draw, badness);
    else
      plain.data_ptr<double>()[i] = drawn_number(draw, badness);
  return plain.to(common.type).reshape(common.sizes);
}

// Not every type has every layout.
at::Tensor in_some_layout(Draw& draw, const at::Tensor& tensor, int badness) try {
  const int64_t rank = tensor.dim();
  const bool is_empty = tensor.numel() == 0;
  switch (draw.below(badness > 0 ? 14 : 8)) {
    case 0:
      return rank > 1 ? tensor.transpose(0, 1) : tensor;
    case 1:
      return rank > 0 && !is_empty ? tensor.slice(-1, 0, INT64_MAX, 2) : tensor;
    case 8:
      return rank > 0 && !is_empty ? tensor.to_sparse() : tensor;
    case 9:
      return rank == 2 && !is_empty ? tensor.to_sparse_csr() : tensor;
    case 10:
      if (rank == 0 || is_empty) return tensor;
      return at::quantize_per_tensor(tensor.to(c10::kFloat), 0.5, 3, c10::kQInt8);
    case 11:
      if (rank == 0 || is_empty) return tensor;
      return at::quantize_per_channel(tensor.to(c10::kFloat), at::ones({tensor.size(0)}),
                                      at::zeros({tensor.size(0)}, c10::kLong), 0, c10::kQUInt8);
    default:
      return tensor;
  }
} catch (const c10::Error&) {
  return tensor;
}

at::Tensor drawn_tensor(Draw& draw, Common common, int badness) {
  if (draw.below(10) < static_cast<uint64_t>(badness)) common.sizes = one_of(draw, all_sizes());
  if (draw.below(10) < static_cast<uint64_t>(badness)) common.type = one_of(draw, all_types());
  if (badness > 1 && draw.one_in(40)) return {};
  return in_some_layout(draw, drawn_values(draw, common, badness), badness);
}

c10::IValue drawn(Draw& draw, const c10::TypePtr& type, const Common& common, int badness);

template <class T, class F>
c10::IValue drawn_list(uint64_t length, F element) {
  c10::List<T> list;
  for (uint64_t i = 0; i < length; ++i) list.push_back(element());
  return list;
}

c10::IValue drawn_list_of(Draw& draw, const c10::TypePtr& type, const Common& common, int badness) {
  uint64_t length = draw.below(4);
  if (draw.one_in(2)) length = std::min<uint64_t>(common.sizes.size(), 3);
  switch (type->kind()) {
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return drawn_list<int64_t>(length, [&] { return drawn_integer(draw, badness); });
    case c10::TypeKind::FloatType:
      return drawn_list<double>(length, [&] { return drawn_number(draw, badness); });
    case c10::TypeKind::BoolType:
      return drawn_list<bool>(length, [&] { return draw.one_in(2); });
    case c10::TypeKind::TensorType:
      return drawn_list<at::Tensor>(length, [&] { return drawn_tensor(draw, common, badness); });
    default: {
      c10::impl::GenericList list(c10::AnyType::get());
      for (uint64_t i = 0; i < length; ++i) list.push_back(drawn(draw, type, common, badness));
      return list;
    }
  }
}

c10::IValue drawn(Draw& draw, const c10::TypePtr& type, const Common& common, int badness) {
  switch (type->kind()) {
    case c10::TypeKind::OptionalType:
      if (draw.one_in(2)) return {};
      return drawn(draw, type->expectRef<c10::OptionalType>().getElementType(), common, badness);
    case c10::TypeKind::ListType:
      return drawn_list_of(draw, type->expectRef<c10::ListType>().getElementType(), common,
                           badness);
    case c10::TypeKind::TensorType:
      return drawn_tensor(draw, common, badness);
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return drawn_integer(draw, badness);
    case c10::TypeKind::FloatType:
      return drawn_number(draw, badness);
    case c10::TypeKind::BoolType:
      return draw.one_in(2);
    case c10::TypeKind::NumberType:
      if (draw.one_in(2)) return drawn_integer(draw, badness);
      if (draw.one_in(8)) return c10::complex<double>(drawn_number(draw, badness), 1);
      return drawn_number(draw, badness);
    case c10::TypeKind::StringType:
      return drawn_text(draw);
    case c10::TypeKind::DeviceObjType:
      return c10::IValue(
          c10::Device(draw.one_in(4) ? c10::DeviceType::Meta : c10::DeviceType::CPU));
    default:
      return {};
  }
}

bool is_type_number(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType();
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

}  // namespace

uint64_t Draw::below(uint64_t bound) {
  state_ += 0x9e3779b97f4a7c15ULL;
  uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  return (mixed ^ (mixed >> 31)) % bound;
}

int64_t drawn_integer(Draw& draw, int badness) {
  static const std::vector<int64_t> bad = {-1,
                                           -2,
                                           -3,
                                           -7,
                                           5,
                                           7,
                                           64,
                                           1000,
                                           int64_t{1} << 20,
                                           int64_t{1} << 31,
                                           int64_t{1} << 32,
                                           int64_t{1} << 40,
                                           int64_t{1} << 62,
                                           -(int64_t{1} << 33),
                                           INT64_MAX,
                                           INT64_MIN};
  if (draw.below(8) < static_cast<uint64_t>(badness)) return one_of(draw, bad);
  return static_cast<int64_t>(draw.below(4));
}

double drawn_number(Draw& draw, int badness) {
  static const std::vector<double> bad = {std::numeric_limits<double>::quiet_NaN(),
                                          std::numeric_limits<double>::infinity(),
                                          -std::numeric_limits<double>::infinity(),
                                          -1,
                                          1e300,
                                          -1e300,
                                          1e-320,
                                          1e10};
  if (draw.below(8) < static_cast<uint64_t>(badness)) return one_of(draw, bad);
  return static_cast<double>(draw.below(8)) / 4;
}

std::string drawn_text(Draw& draw) {
  static const std::vector<std::string> texts = {
      "none",     "mean",     "sum",       "floor",      "trunc",     "reflect", "constant",
      "circular", "nuc",      "fro",       "ij,jk->ik",  "...i,j->j", "i",       "ii",
      "->",       "ij",       "replicate", "prod",       "amax",      "linear",  "gelsd",
      "same",     "valid",    "xy",        "",           "tanh",      "add",     "multiply",
      "right",    "\xff\x01", "backward",  "a,a,a,a->aa"};
  return one_of(draw, texts);
}

std::vector<c10::IValue> drawn_arguments(const c10::FunctionSchema& schema, uint64_t seed,
                                         int badness) {
  Draw draw(seed);
  const Common common{one_of(draw, all_sizes()),
                      draw.one_in(2) ? c10::kFloat : one_of(draw, all_types())};
  std::vector<c10::IValue> arguments;
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.default_value() && draw.below(8) >= static_cast<uint64_t>(badness) + 2) {
      arguments.push_back(*argument.default_value());
      continue;
    }
    // In `type` an enumeration is a whole number.
    arguments.push_back(is_type_number(argument.real_type()) && draw.one_in(2)
                            ? c10::IValue(static_cast<int64_t>(draw.below(50)))
                            : drawn(draw, argument.type(), common, badness));
  }
  return arguments;
}

}  // namespace rehearsal
