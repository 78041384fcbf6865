#include "core/functions/schema_ranges.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/core/jit_type.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/QScheme.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace rehearsal {
namespace {

// ---- enumerations -----------------------------------------------------------

struct Enumeration {
  c10::TypeKind kind;
  std::string_view name;
  int64_t count;
  int64_t none;  // a number below `count` that stands for nothing; -1: there is none
};

constexpr std::array<Enumeration, 4> kEnumerations = {{
    {c10::TypeKind::ScalarTypeType, "ScalarType", static_cast<int64_t>(c10::ScalarType::NumOptions),
     static_cast<int64_t>(c10::ScalarType::Undefined)},
    {c10::TypeKind::LayoutType, "Layout", static_cast<int64_t>(c10::Layout::NumOptions), -1},
    {c10::TypeKind::MemoryFormatType, "MemoryFormat",
     static_cast<int64_t>(c10::MemoryFormat::NumOptions), -1},
    {c10::TypeKind::QSchemeType, "QScheme", c10::COMPILE_TIME_NUM_QSCHEMES, -1},
}};

const Enumeration* enumeration_of(c10::TypePtr type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    type = type->expectRef<c10::OptionalType>().getElementType();
  for (const Enumeration& known : kEnumerations)
    if (known.kind == type->kind()) return &known;
  return nullptr;
}

// Layouts that tensors have inside LibTorch only: they cannot be sent, and many operators take the
// memory of such a tensor for what it is not.
bool is_inner_layout(const Enumeration& enumeration, int64_t number) {
  return enumeration.kind == c10::TypeKind::LayoutType &&
         (number == static_cast<int64_t>(c10::Layout::Mkldnn) ||
          number == static_cast<int64_t>(c10::Layout::Jagged));
}

bool is_here(const c10::Device& device) {
  if (device.is_cpu()) return true;
  return device.type() == at::accelerator::getAccelerator();
}

// ---- lists of tensors --------------------------------------------------------

// Each takes a few hundred bytes, however small it is.
constexpr int64_t kTensorsMax = 1 << 16;

bool makes_tensor_list(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& returned) {
    return returned.type()->kind() == c10::TypeKind::ListType;
  });
}

int64_t longest_dimension(const std::vector<c10::IValue>& arguments) {
  int64_t longest = 0;
  for (const c10::IValue& argument : arguments)
    if (argument.isTensor() && argument.toTensor().defined())
      for (const int64_t size : argument.toTensor().sizes()) longest = std::max(longest, size);
  return longest;
}

// How many tensors one argument alone can ask for.
int64_t asked_for(const std::string& name, const c10::IValue& value, int64_t longest) {
  if (value.isList()) return static_cast<int64_t>(value.toListRef().size());
  if (!value.isInt()) return 0;
  if (name == "split_size") return longest / std::max<int64_t>(value.toInt(), 1);
  if (name == "sections" || name == "chunks") return value.toInt();
  return 0;
}

// ---- what kernels trust --------------------------------------------------------

constexpr size_t kMatricesMax = 64;

bool has_quantized(const c10::IValue& argument) {
  bool found = false;
  argument.visit([&found](const c10::IValue& part) {
    found |= part.isTensor() && part.toTensor().defined() && part.toTensor().is_quantized();
    return false;
  });
  return found;
}

// A rounding mode that truncates, and no number that is not whole.
bool truncates_whole(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& arguments) {
  bool truncates = false;
  bool is_whole = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    if (schema.arguments()[i].name() == "rounding_mode")
      truncates = value.isString() && value.toStringRef() == "trunc";
    else if (value.isTensor() && value.toTensor().defined())
      is_whole &= at::isIntegralType(value.toTensor().scalar_type(), /*includeBool=*/true);
    else
      is_whole &= !value.isDouble() && !value.isComplexDouble();
  }
  return truncates && is_whole;
}

}  // namespace

std::string why_out_of_range(const c10::IValue& value, const c10::Argument& argument) {
  if (value.isDevice() && !is_here(value.toDevice()))
    return "the argument '" + argument.name() + "' is " + value.toDevice().str() +
           ", a device that is not here";
  if (value.isInt()) {
    const Enumeration* const enumeration = enumeration_of(argument.real_type());
    if (enumeration == nullptr) return {};
    const int64_t number = value.toInt();
    if (is_inner_layout(*enumeration, number))
      return "the argument '" + argument.name() + "' is " + std::to_string(number) +
             ", a c10::Layout that is LibTorch's own";
    if (number >= 0 && number < enumeration->count && number != enumeration->none) return {};
    return "the argument '" + argument.name() + "' is " + std::to_string(number) +
           ", which is no number of a c10::" + std::string(enumeration->name) +
           ": they go from 0 to " + std::to_string(enumeration->count - 1);
  }
  if (!value.isList() || !value.toListRef().empty() || argument.N().value_or(0) < 2) return {};
  const bool may_be_empty = argument.default_value() && argument.default_value()->isList() &&
                            argument.default_value()->toListRef().empty();
  if (may_be_empty) return {};
  return "the argument '" + argument.name() + "' is an empty list: it has " +
         std::to_string(*argument.N()) + " elements";
}

std::string why_too_many(const c10::FunctionSchema& schema,
                         const std::vector<c10::IValue>& arguments) {
  if (!makes_tensor_list(schema)) return {};
  const int64_t longest = longest_dimension(arguments);
  int64_t tensors = 0;
  for (size_t i = 0; i < arguments.size(); ++i)
    tensors = std::max(tensors, asked_for(schema.arguments()[i].name(), arguments[i], longest));
  if (schema.name() == "aten::unbind") tensors = longest;
  if (tensors <= kTensorsMax) return {};
  return "its result would be of " + std::to_string(tensors) + " tensors, more than " +
         std::to_string(kTensorsMax);
}

std::string why_unchecked(const c10::FunctionSchema& schema,
                          const std::vector<c10::IValue>& arguments) {
  if (std::ranges::any_of(arguments, has_quantized))
    return "it is not called by name with a quantized tensor: dequantize it first";
  if (truncates_whole(schema, arguments))
    return "it does not truncate quotients of whole numbers: round them with 'floor', or divide "
           "numbers that are not whole";
  const bool plans =
      schema.name() == "aten::chain_matmul" || schema.name() == "aten::linalg_multi_dot";
  if (plans && !arguments.empty() && arguments.front().isList() &&
      arguments.front().toListRef().size() > kMatricesMax)
    return "it multiplies no more than " + std::to_string(kMatricesMax) + " matrices, not " +
           std::to_string(arguments.front().toListRef().size());
  return {};
}

}  // namespace rehearsal
