#pragma once

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "core/rpc/function.h"

namespace rehearsal {

// The functions that peers may call, by name. Nothing else can be called. An ordinary value: no
// global, no self-registering macro. All workers of a program have the same.
//
//   FunctionRegistry registry;
//   registry.function("add", &add).runs_inline();
//   registry.type<Table>("Table").constructor<int64_t>().method("forward", &Table::forward);
//
// Throws std::invalid_argument for a name that is taken, and for two names of one address (which a
// linker that folds equal functions, --icf=all, makes: link with --icf=safe). An overload is
// registered, and called, by a cast to its type.
class FunctionRegistry {
 public:
  template <class T>
  class Type;

  template <class F>
  FunctionRegistry& function(const std::string& name, F function) {
    static_assert(CallableFunction<F>,
                  "only functions can be registered: a lambda or std::function has no address "
                  "that the caller could name");
    add_callable<void>(name, function);
    return *this;
  }

  // The function registered last runs on the thread that received its call, at once: it must be
  // short and may not park.
  FunctionRegistry& runs_inline();

  // Registers a type whose values live at their owners and are used through RRef<T>.
  template <class T>
  Type<T> type(const std::string& name) {
    add_type(typeid(T), name);
    return Type<T>(*this, name);
  }

  [[nodiscard]] const std::vector<Function>& functions() const { return functions_; }

  // The position of a function, or of a method of T. Error: unknown_function.
  template <class T, class F>
  [[nodiscard]] Result<uint32_t> position(F function) const {
    return find(key_of<T>(function));
  }
  [[nodiscard]] Result<uint32_t> position(const std::string& name) const;

  // The constructor of `type` that takes arguments of these wire types, widths of numbers aside.
  // The error lists all there are.
  [[nodiscard]] Result<uint32_t> constructor(std::type_index type,
                                             const std::string& parameters) const;

  // A text with a line for each function: what the hello carries.
  [[nodiscard]] std::string describe() const;

  // The same for every function: "int" for all widths, "float" for both.
  [[nodiscard]] static std::string loosen(std::string_view signature);

 private:
  struct Key {
    std::array<std::byte, 16> address;
    std::type_index function_type;
    std::type_index object_type;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  template <class T, class F>
  static Key key_of(F function) {
    static_assert(sizeof function <= sizeof(Key::address));
    Key key{{}, typeid(F), typeid(T)};
    std::memcpy(key.address.data(), &function, sizeof function);
    return key;
  }

  template <class T, class F>
  void add_callable(const std::string& name, F function) {
    using Parameters = ParametersOf<F>;
    Function entry{.name = name,
                   .parameters = detail::sign_parameters(Parameters{}),
                   .result = detail::sign_result<ResultOf<F>>(),
                   .object_type = typeid(T),
                   .invoke = [function](const Invocation& invocation) {
                     return detail::invoke<T>(function, invocation, Parameters{});
                   }};
    add(std::move(entry), key_of<T>(function));
  }

  void add(Function function, const Key& key);
  void add_named(Function function);
  void add_type(std::type_index type, const std::string& name);
  [[nodiscard]] Result<uint32_t> find(const Key& key) const;

  std::vector<Function> functions_;
  std::map<std::string, uint32_t> by_name_;
  std::unordered_map<Key, uint32_t, KeyHash> by_key_;  // look-up only
  std::map<std::type_index, std::string> type_names_;
};

// Registers the constructors and methods of one type.
template <class T>
class FunctionRegistry::Type {
 public:
  Type(FunctionRegistry& registry, std::string name)
      : registry_(registry), name_(std::move(name)) {}

  template <class... P>
  Type& constructor() {
    Function entry;
    entry.parameters = detail::sign_parameters(Parameters<std::decay_t<P>...>{});
    entry.name = name_ + "(" + entry.parameters + ")";
    entry.object_type = typeid(T);
    entry.is_constructor = true;
    entry.invoke = [](const Invocation& invocation) {
      return detail::construct<T>(invocation, Parameters<std::decay_t<P>...>{});
    };
    registry_.add_named(std::move(entry));
    return *this;
  }

  // A method of T or of a base of it.
  template <class F>
  Type& method(const std::string& name, F method) {
    static_assert(CallableMethod<F>, "only methods can be registered for a type");
    static_assert(std::is_base_of_v<typename Signature<F>::owner, T>);
    registry_.add_callable<T>(name_ + "." + name, method);
    return *this;
  }

  // The method registered last guards itself: it runs beside others of the same value.
  Type& parallel() {
    registry_.functions_.back().is_parallel = true;
    return *this;
  }

  // See FunctionRegistry::runs_inline.
  Type& runs_inline() {
    registry_.runs_inline();
    return *this;
  }

 private:
  FunctionRegistry& registry_;
  const std::string name_;
};

}  // namespace rehearsal
