#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/values/value.h"

// The arguments of what has a LibTorch schema: ATen operators and TorchScript functions. They are
// IValues, by position and then by name; what is left out takes the schema's default.
namespace rehearsal {

// An argument by its name: worker.rpc_sync<at::Tensor>("ps", "aten::add.Tensor", a, b,
// kwarg("alpha", 2)). After those that are given by position.
struct Keyword {
  std::string name;
  c10::IValue value;
};

template <class T>
[[nodiscard]] Keyword kwarg(std::string name, T value) {
  return {std::move(name), c10::IValue(std::move(value))};
}

template <class A>
inline constexpr bool is_keyword = std::is_same_v<std::decay_t<A>, Keyword>;

struct SchemaArguments {
  std::vector<c10::IValue> positional;
  std::vector<std::pair<std::string, c10::IValue>> keywords;

  friend void describe(SchemaArguments& arguments, auto&& fields) {
    fields(arguments.positional, arguments.keywords);
  }
  template <class A>
  void add(const A& argument) {
    if constexpr (is_keyword<A>)
      keywords.emplace_back(argument.name, argument.value);
    else
      positional.emplace_back(argument);
  }
};

// Of values and keywords, the keywords last.
template <class... A>
[[nodiscard]] SchemaArguments schema_arguments(const A&... given) {
  constexpr bool in_order = [] {
    bool named = false;
    bool right = true;
    ((right = right && (is_keyword<A> || !named), named = named || is_keyword<A>), ...);
    return right;
  }();
  static_assert(in_order, "an argument by position cannot follow one by name");
  SchemaArguments arguments;
  (arguments.add(given), ...);
  return arguments;
}

// Arguments in the order of a schema, every default filled in.
struct Arranged {
  std::vector<c10::IValue> stack;
  bool converted = false;  // some only fit: a whole number as a float, a list by its elements
};

// The arguments that may be given by position: every one, or only those that the schema does not
// keep for keywords.
enum class ByPosition : uint8_t { all, as_declared };

// The error (bad_arguments, in `function`) names the argument that is unknown, given twice, missing
// or of another type, and the schema.
[[nodiscard]] Result<Arranged> arrange(const c10::FunctionSchema& schema, SchemaArguments arguments,
                                       const std::string& function,
                                       ByPosition by_position = ByPosition::all);

// From the bytes of a call; throws BadValue.
[[nodiscard]] SchemaArguments read_schema_arguments(Payload& arguments);

// One result is an IValue, several are a tuple, none is None.
[[nodiscard]] c10::IValue packed_results(std::vector<c10::IValue> stack);

}  // namespace rehearsal
