#include "core/functions/schema_arguments.h"

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <optional>

#include "core/functions/schema_ranges.h"

namespace rehearsal {
namespace {

enum class Fit : uint8_t { not_at_all, converted, exact };

Fit fit(c10::IValue& value, const c10::TypePtr& type);

Fit fit_list(c10::IValue& value, const c10::TypePtr& element_type) {
  if (!value.isList()) return Fit::not_at_all;
  c10::impl::GenericList fitting(element_type);
  for (c10::IValue element : value.toListRef()) {
    if (fit(element, element_type) == Fit::not_at_all) return Fit::not_at_all;
    fitting.push_back(std::move(element));
  }
  value = std::move(fitting);
  return Fit::converted;
}

Fit fit_dict(c10::IValue& value, const c10::DictType& type) {
  if (!value.isGenericDict()) return Fit::not_at_all;
  c10::impl::GenericDict fitting(type.getKeyType(), type.getValueType());
  for (const auto& entry : value.toGenericDict()) {
    c10::IValue key = entry.key();
    c10::IValue element = entry.value();
    if (fit(key, type.getKeyType()) == Fit::not_at_all ||
        fit(element, type.getValueType()) == Fit::not_at_all)
      return Fit::not_at_all;
    fitting.insert(std::move(key), std::move(element));
  }
  value = std::move(fitting);
  return Fit::converted;
}

Fit fit_tuple(c10::IValue& value, const c10::TupleType& type) {
  if (!value.isTuple() || value.toTupleRef().elements().size() != type.elements().size())
    return Fit::not_at_all;
  std::vector<c10::IValue> elements = value.toTupleRef().elements().vec();
  for (size_t i = 0; i < elements.size(); ++i)
    if (fit(elements[i], type.elements()[i]) == Fit::not_at_all) return Fit::not_at_all;
  value = c10::ivalue::Tuple::create(std::move(elements));
  return Fit::converted;
}

Fit fit_device(c10::IValue& value) {
  if (!value.isString()) return Fit::not_at_all;
  try {
    value = c10::Device(value.toStringRef());
    return Fit::converted;
  } catch (const c10::Error&) {
    return Fit::not_at_all;  // No device has such a name.
  }
}

// A number where a schema has a list of N stands for N of it.
bool repeat(c10::IValue& value, const c10::Argument& argument) {
  if (!argument.N() || (!value.isInt() && !value.isDouble())) return false;
  if (value.isInt())
    value = c10::List<int64_t>(std::vector<int64_t>(*argument.N(), value.toInt()));
  else
    value = c10::List<double>(std::vector<double>(*argument.N(), value.toDouble()));
  return true;
}

// Makes a value fit the schema's type, if it can: a whole number is a number of any kind, a list is
// a list of what its elements are, and a text names a device.
Fit fit(c10::IValue& value, const c10::TypePtr& type) {
  if (value.type()->isSubtypeOf(*type)) return Fit::exact;
  switch (type->kind()) {
    case c10::TypeKind::NumberType:
      return value.isScalar() ? Fit::exact : Fit::not_at_all;
    case c10::TypeKind::FloatType:
      if (!value.isInt()) return Fit::not_at_all;
      value = static_cast<double>(value.toInt());
      return Fit::converted;
    case c10::TypeKind::DeviceObjType:
      return fit_device(value);
    case c10::TypeKind::OptionalType:
      return fit(value, type->expectRef<c10::OptionalType>().getElementType());
    case c10::TypeKind::ListType:
      return fit_list(value, type->expectRef<c10::ListType>().getElementType());
    case c10::TypeKind::DictType:
      return fit_dict(value, type->expectRef<c10::DictType>());
    case c10::TypeKind::TupleType:
      return fit_tuple(value, type->expectRef<c10::TupleType>());
    default:
      return Fit::not_at_all;
  }
}

class Arranging {
 public:
  Arranging(const c10::FunctionSchema& schema, const std::string& function)
      : schema_(schema), function_(function), places_(schema.arguments().size()) {}

  [[nodiscard]] Error refused(const std::string& why) const {
    return {.kind = ErrorKind::bad_arguments,
            .text = why + "; its schema is " + c10::toString(schema_),
            .function = function_};
  }

  [[nodiscard]] Status take(SchemaArguments arguments, ByPosition by_position) {
    const auto takes = static_cast<size_t>(
        std::ranges::count_if(schema_.arguments(), [by_position](const c10::Argument& argument) {
          return by_position == ByPosition::all || !argument.kwarg_only();
        }));
    if (arguments.positional.size() > takes)
      return refused("it takes " + std::to_string(takes) + " arguments" +
                     (takes < places_.size() ? " by position" : "") + ", not " +
                     std::to_string(arguments.positional.size()));
    for (size_t i = 0; i < arguments.positional.size(); ++i)
      places_[i] = std::move(arguments.positional[i]);
    for (auto& [name, value] : arguments.keywords) {
      const std::optional<int> place = schema_.argumentIndexWithName(name);
      if (!place) return refused("it has no argument named '" + name + "'");
      if (places_[*place]) return refused("the argument '" + name + "' is given twice");
      places_[*place] = std::move(value);
    }
    return Unit{};
  }

  [[nodiscard]] Result<Arranged> finish() {
    Arranged arranged;
    for (size_t i = 0; i < places_.size(); ++i) {
      const c10::Argument& argument = schema_.arguments()[i];
      if (!places_[i]) {
        if (!argument.default_value())
          return refused("the argument '" + argument.name() + "' is missing");
        arranged.stack.push_back(*argument.default_value());
        continue;
      }
      const bool repeated = repeat(*places_[i], argument);
      const Fit fits = fit(*places_[i], argument.type());
      if (fits == Fit::not_at_all)
        return refused("the argument '" + argument.name() + "' is a " + argument.type()->str() +
                       ", not a " + places_[i]->type()->str());
      if (std::string why = why_out_of_range(*places_[i], argument); !why.empty())
        return refused(why);
      arranged.converted = arranged.converted || repeated || fits == Fit::converted;
      arranged.stack.push_back(std::move(*places_[i]));
    }
    return arranged;
  }

 private:
  const c10::FunctionSchema& schema_;
  const std::string& function_;
  std::vector<std::optional<c10::IValue>> places_;
};

}  // namespace

Result<Arranged> arrange(const c10::FunctionSchema& schema, SchemaArguments arguments,
                         const std::string& function, ByPosition by_position) {
  Arranging arranging(schema, function);
  if (Status taken = arranging.take(std::move(arguments), by_position); !taken.ok())
    return taken.error();
  return arranging.finish();
}

SchemaArguments read_schema_arguments(Payload& arguments) {
  ValueReader reader(arguments);
  auto given = Value<SchemaArguments>::read(reader);
  reader.finish();
  return given;
}

c10::IValue packed_results(std::vector<c10::IValue> stack) {
  if (stack.empty()) return {};
  if (stack.size() == 1) return std::move(stack.front());
  return c10::ivalue::Tuple::create(std::move(stack));
}

}  // namespace rehearsal
