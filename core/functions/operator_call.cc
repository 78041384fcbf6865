#include "core/functions/operator_call.h"

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/functions/operator_memory.h"
#include "core/functions/operator_names.h"
#include "core/functions/pure_operators.h"
#include "core/functions/schema_arguments.h"
#include "core/functions/schema_ranges.h"
#include "core/values/tensor_form.h"

namespace rehearsal {
namespace {

constexpr uint64_t kInlineBytesMax = 64 * 1024;
constexpr int64_t kInlineElementsMax = 16 * 1024;

// Whether the shape that these tensors broadcast to has few elements. A dimension without any
// counts as one: a result may be as long as the others.
bool are_few_elements(const std::vector<at::Tensor>& tensors) {
  std::vector<int64_t> sizes;  // from the last dimension to the first
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    const auto dimensions = static_cast<size_t>(tensor.dim());
    if (sizes.size() < dimensions) sizes.resize(dimensions, 1);
    for (size_t i = 0; i < dimensions; ++i)
      sizes[i] = std::max(sizes[i], tensor.sizes()[dimensions - 1 - i]);
  }
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    if (size > kInlineElementsMax / elements) return false;
    elements *= size;
  }
  return true;
}

bool has_out(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(),
                             [](const c10::Argument& argument) { return argument.is_out(); });
}

// The meanings of a name that peers may call; of a name without overload, not those that write into
// an argument.
std::vector<c10::OperatorHandle> allowed_overloads(const std::string& name,
                                                   const AllowedOperators& allowed) {
  std::vector<c10::OperatorHandle> overloads = operators_named(name);
  const bool is_whole_name = name.find('.') == std::string::npos;
  std::erase_if(overloads, [&](const c10::OperatorHandle& overload) {
    return !allowed.contains(full_name(overload)) || (is_whole_name && has_out(overload.schema()));
  });
  return overloads;
}

[[noreturn]] void refuse(const std::string& name, std::string why) {
  throw RpcError({.kind = ErrorKind::bad_arguments, .text = std::move(why), .function = name});
}

std::string how_to_allow(const std::string& name) {
  return "allow it with registry.operators({\"" + name +
         "\"}), or call it in a registered function";
}

// Of a name without overload, after none that is allowed has fitted: the others, a line each.
std::string others_of(const std::string& name, const AllowedOperators& allowed) {
  std::string others;
  for (const c10::OperatorHandle& overload : operators_named(name))
    if (!has_out(overload.schema()) && !allowed.contains(full_name(overload)))
      others += "\n" + full_name(overload) +
                " may not be called by name here: " + how_to_allow(full_name(overload));
  return others;
}

struct Fitting {
  c10::OperatorHandle overload;
  Arranged arranged;
};

// Of a name without overload, those that fit as they are declared; where none does, the one without
// a name with everything by position. Throws RpcError if nothing fits.
std::vector<Fitting> fitting_overloads(const std::string& name, const SchemaArguments& arguments,
                                       const AllowedOperators& allowed) {
  const std::vector<c10::OperatorHandle> overloads = allowed_overloads(name, allowed);
  REHEARSAL_CHECK(!overloads.empty(), name);
  std::vector<Fitting> fitting;
  std::string why;
  const auto attempt = [&](const c10::OperatorHandle& overload, ByPosition by_position) {
    Result<Arranged> arranged = arrange(overload.schema(), arguments, name, by_position);
    if (arranged.ok()) return fitting.push_back({overload, std::move(arranged).value()});
    why += (why.empty() ? "" : "\n") + arranged.error().text;
  };
  if (overloads.size() > 1)
    for (const c10::OperatorHandle& overload : overloads)
      attempt(overload, ByPosition::as_declared);
  const bool is_only = overloads.size() == 1;
  const bool has_unnamed = !is_only && overloads.front().schema().overload_name().empty();
  if (fitting.empty() && (is_only || has_unnamed)) attempt(overloads.front(), ByPosition::all);
  if (fitting.empty())
    refuse(name,
           (is_only ? why : "none of its overloads fits:\n" + why) + others_of(name, allowed));
  return fitting;
}

// Throws RpcError if several are as good.
Fitting choose(const std::string& name, std::vector<Fitting> fitting) {
  const auto is_exact = [](const Fitting& one) { return !one.arranged.converted; };
  if (fitting.size() == 1 || fitting.front().overload.schema().overload_name().empty())
    return std::move(fitting.front());
  if (std::ranges::count_if(fitting, is_exact) == 1)
    return std::move(*std::ranges::find_if(fitting, is_exact));
  std::string names;
  for (const Fitting& one : fitting) names += " " + full_name(one.overload);
  refuse(name, "several of its overloads fit: write which you mean:" + names);
}

// A view may be larger than what it is of, and is sent with all of its elements. Throws
// MemoryRefused.
void check_size(const c10::IValue& result, uint64_t bytes_max) {
  uint64_t bytes = 0;
  result.visit([&](const c10::IValue& part) {
    if (!part.isTensor() || !part.toTensor().defined()) return false;
    const at::Tensor tensor = part.toTensor();
    const bool is_counted =
        tensor.layout() != c10::kStrided || static_cast<uint64_t>(tensor.numel()) <= bytes_max;
    bytes = is_counted ? bytes + memory_bytes(tensor) : UINT64_MAX;
    if (bytes > bytes_max) refuse_memory(bytes, bytes_max);
    return false;
  });
}

}  // namespace

MaybeError check_operator(const std::string& name, const AllowedOperators& allowed) {
  if (!allowed_overloads(name, allowed).empty()) return std::nullopt;
  if (operators_named(name).empty())
    return Error{.kind = ErrorKind::unknown_function,
                 .text = "there is no operator '" + name +
                         "' (write namespace::name.overload, such "
                         "as aten::add.Tensor)",
                 .function = name};
  return Error{
      .kind = ErrorKind::unknown_function,
      .text = "the operator '" + name + "' may not be called by name here: " + how_to_allow(name),
      .function = name};
}

// On the strand: what LibTorch cannot count gets a stack of its own.
StackPlacement placement_of_operator(const std::string& name, const Payload& arguments) try {
  if (!works_by_element(name) || !are_few_elements(arguments.tensors)) return StackPlacement::pool;
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : arguments.tensors)
    if (tensor.defined()) bytes += memory_bytes(tensor);
  return bytes <= kInlineBytesMax ? StackPlacement::inline_ : StackPlacement::pool;
} catch (const c10::Error&) {
  return StackPlacement::pool;
}

Returned call_operator(const std::string& name, Payload& arguments, const AllowedOperators& allowed,
                       uint64_t bytes_max) try {
  const SchemaArguments given = read_schema_arguments(arguments);
  Fitting chosen = choose(name, fitting_overloads(name, given, allowed));
  if (std::string why = why_too_many(chosen.overload.schema(), chosen.arranged.stack); !why.empty())
    refuse(name, why);
  if (is_pure_operator(full_name(chosen.overload)))
    if (std::string why = why_unchecked(chosen.overload.schema(), chosen.arranged.stack);
        !why.empty())
      refuse(name, why);
  c10::IValue result;
  {
    const OperatorMemory memory(bytes_max);
    std::vector<c10::IValue> stack = std::move(chosen.arranged.stack);
    chosen.overload.callBoxed(stack);
    result = packed_results(std::move(stack));
  }
  check_size(result, bytes_max);
  return HeldValue::of<c10::IValue>(std::move(result));
} catch (const MemoryRefused& refused) {
  refuse(name, refused.what());
}

}  // namespace rehearsal
