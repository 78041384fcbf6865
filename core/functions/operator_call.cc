#include "core/functions/operator_call.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <vector>

#include "core/base/check.h"
#include "core/functions/schema_arguments.h"
#include "core/values/tensor_form.h"

namespace rehearsal {
namespace {

constexpr uint64_t kInlineBytesMax = 64 * 1024;

std::optional<c10::OperatorHandle> find_operator(const std::string& name) {
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
}

bool has_out(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(),
                             [](const c10::Argument& argument) { return argument.is_out(); });
}

// The meanings of "namespace::name": every overload, the one without a name first, then by name;
// not those that write into an argument. A function that only TorchScript has is no operator.
std::vector<c10::OperatorHandle> overloads_of(const std::string& name) {
  if (name.find('.') != std::string::npos) {
    const auto found = find_operator(name);
    return found ? std::vector{*found} : std::vector<c10::OperatorHandle>();
  }
  const size_t colons = name.find("::");
  if (colons == std::string::npos || colons == 0 || colons + 2 == name.size()) return {};
  std::vector<c10::OperatorHandle> overloads;
  for (const auto& known : torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString(name))) {
    if (!known->isC10Op() || has_out(known->schema())) continue;
    if (auto found = c10::Dispatcher::singleton().findSchema(known->schema().operator_name()))
      overloads.push_back(*found);
  }
  std::ranges::sort(overloads, {}, [](const c10::OperatorHandle& overload) {
    return overload.schema().overload_name();
  });
  return overloads;
}

std::string full_name(const c10::OperatorHandle& overload) {
  const auto& schema = overload.schema();
  return schema.overload_name().empty() ? schema.name()
                                        : schema.name() + "." + schema.overload_name();
}

[[noreturn]] void refuse(const std::string& name, std::string why) {
  throw RpcError({.kind = ErrorKind::bad_arguments, .text = std::move(why), .function = name});
}

struct Fitting {
  c10::OperatorHandle overload;
  Arranged arranged;
};

// Of a name without overload, those that fit as they are declared; where none does, the one without
// a name with everything by position. Throws RpcError if nothing fits.
std::vector<Fitting> fitting_overloads(const std::string& name, const SchemaArguments& arguments) {
  const std::vector<c10::OperatorHandle> overloads = overloads_of(name);
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
  if (fitting.empty()) refuse(name, is_only ? why : "none of its overloads fits:\n" + why);
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

}  // namespace

MaybeError check_operator(const std::string& name) {
  if (find_operator(name) || !overloads_of(name).empty()) return std::nullopt;
  return Error{.kind = ErrorKind::unknown_function,
               .text = "there is no operator '" + name +
                       "' (write namespace::name.overload, such "
                       "as aten::add.Tensor)",
               .function = name};
}

StackPlacement placement_of_operator(const Payload& arguments) {
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : arguments.tensors)
    if (tensor.defined()) bytes += memory_bytes(tensor);
  return bytes <= kInlineBytesMax ? StackPlacement::inline_ : StackPlacement::pool;
}

Returned call_operator(const std::string& name, Payload& arguments) {
  Fitting chosen = choose(name, fitting_overloads(name, read_schema_arguments(arguments)));
  std::vector<c10::IValue> stack = std::move(chosen.arranged.stack);
  chosen.overload.callBoxed(stack);
  return HeldValue::of<c10::IValue>(packed_results(std::move(stack)));
}

}  // namespace rehearsal
