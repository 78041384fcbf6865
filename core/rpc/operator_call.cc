#include "core/rpc/operator_call.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>

namespace rehearsal {
namespace {

constexpr uint64_t kInlineBytesMax = 64 * 1024;

std::optional<c10::OperatorHandle> find_operator(const std::string& name) {
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return c10::Dispatcher::singleton().findSchema({name.substr(0, dot), overload});
}

// Makes a value fit the schema's type, if it can: a whole number is a number of any kind, and a
// list is a list of what its elements are. False if it does not fit.
bool fit(c10::IValue& value, const c10::TypePtr& type) {
  if (value.type()->isSubtypeOf(*type)) return true;
  switch (type->kind()) {
    case c10::TypeKind::NumberType:
      return value.isScalar();
    case c10::TypeKind::FloatType:
      if (!value.isInt()) return false;
      value = static_cast<double>(value.toInt());
      return true;
    case c10::TypeKind::OptionalType:
      return fit(value, type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType: {
      if (!value.isList()) return false;
      const c10::TypePtr element_type = type->expectRef<c10::ListType>().getElementType();
      c10::impl::GenericList fitting(element_type);
      for (c10::IValue element : value.toListRef()) {
        if (!fit(element, element_type)) return false;
        fitting.push_back(std::move(element));
      }
      value = std::move(fitting);
      return true;
    }
    default:
      return false;
  }
}

[[noreturn]] void refuse(const std::string& name, std::string why) {
  throw RpcError({.kind = ErrorKind::bad_arguments, .text = std::move(why), .function = name});
}

}  // namespace

MaybeError check_operator(const std::string& name) {
  if (find_operator(name)) return std::nullopt;
  return Error{.kind = ErrorKind::unknown_function,
               .text = "there is no operator '" + name +
                       "' (write namespace::name.overload, such "
                       "as aten::add.Tensor)",
               .function = name};
}

Where where_of_operator(const Payload& arguments) {
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : arguments.tensors)
    if (tensor.defined()) bytes += tensor.nbytes();
  return bytes <= kInlineBytesMax ? Where::inline_ : Where::pool;
}

Returned call_operator(const std::string& name, Payload& arguments) {
  ValueReader reader(arguments);
  auto stack = Value<std::vector<c10::IValue>>::read(reader);
  reader.finish();
  const c10::OperatorHandle handle = *find_operator(name);
  const auto& schema = handle.schema();
  if (stack.size() > schema.arguments().size())
    refuse(name, "the operator takes " + std::to_string(schema.arguments().size()) +
                     " arguments, not " + std::to_string(stack.size()));
  for (size_t i = stack.size(); i < schema.arguments().size(); ++i) {
    const auto& value = schema.arguments()[i].default_value();
    if (!value) refuse(name, "the argument '" + schema.arguments()[i].name() + "' is missing");
    stack.push_back(*value);
  }
  for (size_t i = 0; i < stack.size(); ++i) {
    const auto& argument = schema.arguments()[i];
    if (!fit(stack[i], argument.type()))
      refuse(name, "the argument '" + argument.name() + "' is a " + argument.type()->str() +
                       ", not a " + stack[i].type()->str());
  }
  handle.callBoxed(stack);
  if (stack.size() == 1) return HeldValue::of<c10::IValue>(std::move(stack.front()));
  return HeldValue::of<c10::IValue>(c10::ivalue::Tuple::create(std::move(stack)));
}

}  // namespace rehearsal
