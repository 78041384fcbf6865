#pragma once

#include <array>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <typeindex>
#include <unordered_map>
#include <vector>

#include "core/functions/allowed_operators.h"
#include "core/functions/caller_rule.h"
#include "core/functions/exception_types.h"
#include "core/functions/function.h"

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
    static_assert(AnyFunction<F>,
                  "only functions can be registered: a lambda or std::function has no address "
                  "that the caller could name");
    add_callable<void>(name, function);
    return *this;
  }

  // The function registered last runs on the thread that received its call, at once: it must be
  // short and may not park. Throws std::invalid_argument for one whose answer is a stream: it
  // parks.
  FunctionRegistry& runs_inline();

  // The function registered last returns a Future that another worker's call completes, as that of
  // a barrier does: while it waits, nothing executes here, and it is not counted as if it did.
  FunctionRegistry& only_waits();

  // Lets only these call the function registered last, or all of the script registered last, in
  // whatever form: names of workers, "trainer0", or of all that a program declares by a Count,
  // "trainer" (caller_rule.h). The caller is the worker at the other end of the link that the call
  // came by, nothing that the call says; who calls through a function of another worker is that
  // worker. Calls of others, the worker's own included, are refused where they arrive, before their
  // arguments are read, with an RpcError (unknown_function) that names the function, the caller and
  // the rule. A rule is the callee's own: workers need not have the same. Throws
  // std::invalid_argument if nobody is named.
  //
  //   registry.function("reset", &reset).callable_by({"master", "trainer"});
  FunctionRegistry& callable_by(std::vector<std::string> callers);

  // ATen operators are called by their schema's name. Without more, peers may call those that are
  // pure and check their arguments (pure_operators.h): none that reads a file, or shows or writes
  // memory that is not its tensors'. This allows others, too, one overload each,
  // "aten::empty.memory_format", or all of a name, "aten::empty", and whatever they do. Throws
  // std::invalid_argument for an operator that LibTorch does not have.
  FunctionRegistry& operators(const std::vector<std::string>& names);
  // Lets only these call operators at all: see callable_by.
  FunctionRegistry& operators_callable_by(std::vector<std::string> callers);
  // The memory that the tensors of one call of an operator may take, what it frees meanwhile
  // included, and the size of its result. kOperatorMemoryMax unless it is set.
  FunctionRegistry& operator_memory_max(uint64_t bytes);

  [[nodiscard]] const AllowedOperators& allowed_operators() const { return operators_; }
  [[nodiscard]] const CallerRule& operator_callers() const { return operator_callers_; }
  [[nodiscard]] uint64_t operator_memory_max() const { return operator_memory_max_; }

  // Registers TorchScript functions: each `f` that the source text defines is called by the name
  // "script::name.f", as an operator is: worker.rpc_sync<at::Tensor>("ps", "script::lib.f", x,
  // kwarg("y", 2)). Peers with another text are refused. Throws std::invalid_argument with the
  // compiler's text; see core/functions/script_library.h.
  FunctionRegistry& script(const std::string& name, const std::string& source);

  // Registers the module that was saved in a file (torch.jit.save), and ScriptModule if need be:
  // worker.remote_by_name<ScriptModule>("ps", "script::name") makes an instance of its own at the
  // target. Peers with another file are refused. Throws std::invalid_argument if it cannot be read.
  FunctionRegistry& script_file(const std::string& name, const std::string& path);

  // Registers the type ScriptModule with its methods; again is harmless. A rule for who may call
  // these comes first: registry.type<ScriptModule>("ScriptModule").callable_by({"trainer"}).
  FunctionRegistry& script_modules();

  // Registers a type whose values live at their owners and are used through RRef<T>.
  template <class T>
  Type<T> type(const std::string& name) {
    add_type(typeid(T), name);
    return Type<T>(*this, name);
  }

  // Registers an exception type: when a function that is served throws an E, or something derived
  // from it of which no closer type is registered, what the caller's rpc_sync, Future::wait and
  // to_here throw is an E too, not an RpcError; also through workers in between that do not catch
  // it. rehearsal::error_of(thrown) is then the Error with worker, function and chain. An E is made
  // anew from its what(), if it has a constructor that takes a text (which must make what() that
  // text again), and gets the fields back that it describes as a value does; RRefs may be among
  // them.
  //
  //   struct OutOfStock : std::runtime_error {
  //     using std::runtime_error::runtime_error;
  //     std::string shelf;
  //     friend void describe(OutOfStock& thrown, auto&& fields) { fields(thrown.shelf); }
  //   };
  //   registry.exception<OutOfStock>("OutOfStock").exception<std::out_of_range>("out_of_range");
  //
  // An exception that cannot be sent or made arrives as an RpcError that says so. Tensors in it
  // bring no gradients. Throws std::invalid_argument for a type or name that is taken.
  template <class E>
  FunctionRegistry& exception(const std::string& name) {
    static_assert(
        ThrowableType<E>,
        "an exception type derives publicly from std::exception, is neither final nor an "
        "RpcError, and has a constructor from a text, or one from nothing and a describe");
    exceptions_.add<E>(name);
    return *this;
  }
  [[nodiscard]] const ExceptionTypes& exceptions() const { return exceptions_; }

  [[nodiscard]] const std::vector<Function>& functions() const { return functions_; }

  // The position of a function, or of a method of T. Error: unknown_function.
  template <class T, class F>
  [[nodiscard]] Result<uint32_t> position(F function) const {
    return find(key_of<T>(function));
  }
  [[nodiscard]] Result<uint32_t> position(const std::string& name) const;
  [[nodiscard]] bool contains(const std::string& name) const { return by_name_.contains(name); }

  // The constructor of `type` that takes arguments of these wire types, widths of numbers aside.
  // The error lists all there are.
  [[nodiscard]] Result<uint32_t> constructor(std::type_index type,
                                             const std::string& parameters) const;

  // The rule of a type, also for having its value as it is, by to_here. Null: everybody may.
  [[nodiscard]] const CallerRule* callers_of(std::type_index type) const;
  // The name that a type was registered by; empty: it was not.
  [[nodiscard]] std::string type_name(std::type_index type) const;

  // A text with a line for each function, exception and script: what the hello carries. The rules
  // for callers are not in it.
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
    if constexpr (detail::check_parameters(typename Signature<F>::written{})) {
      Function entry{.name = name,
                     .parameters = detail::sign_parameters(Parameters{}),
                     .result = detail::sign_result<ResultOf<F>>(),
                     .object_type = typeid(T),
                     .is_stream = is_stream<ResultOf<F>>,
                     .invoke = [function](const Invocation& invocation) {
                       return detail::invoke<T>(function, invocation, Parameters{});
                     }};
      add(std::move(entry), key_of<T>(function));
    }
  }

  void add(Function function, const Key& key);
  void add_named(Function function);
  void add_type(std::type_index type, const std::string& name);
  void note_script(const std::string& name, const std::string& bytes);
  [[nodiscard]] Result<uint32_t> find(const Key& key) const;
  [[nodiscard]] static std::string name_of(const Key& key);

  std::vector<Function> functions_;
  size_t last_begins_ = 0;  // where those begin that were registered last
  std::map<std::string, uint32_t> by_name_;
  std::unordered_map<Key, uint32_t, KeyHash> by_key_;  // look-up only
  std::map<std::type_index, std::string> type_names_;
  std::map<std::type_index, CallerRule> type_callers_;
  ExceptionTypes exceptions_;
  std::map<std::string, std::string> scripts_;  // by name: which text or file
  AllowedOperators operators_;
  CallerRule operator_callers_;
  uint64_t operator_memory_max_ = kOperatorMemoryMax;
};

// Registers the constructors and methods of one type. Its destructor runs at its owner, and may
// call and wait: see RRef.
template <class T>
class FunctionRegistry::Type {
 public:
  Type(FunctionRegistry& registry, std::string name)
      : registry_(registry), name_(std::move(name)) {}

  // P: what the constructor takes. A leading CallContext& is given by the owner, as to functions.
  template <class... P>
  Type& constructor() {
    using Given = detail::Sent<P...>;
    if constexpr (detail::check_parameters(typename Given::written{})) {
      Function entry;
      entry.parameters = detail::sign_parameters(typename Given::parameters{});
      entry.name = name_ + "(" + entry.parameters + ")";
      entry.object_type = typeid(T);
      entry.is_constructor = true;
      entry.invoke = [](const Invocation& invocation) {
        return detail::construct<T, Given::takes_context>(invocation, typename Given::parameters{});
      };
      registry_.add_named(std::move(entry));
      is_begun_ = true;
    }
    return *this;
  }

  // A method of T or of a base of it; or, if `*value` of a T is an object, as of a pointer or of a
  // holder of LibTorch's, of that object.
  template <class F>
  Type& method(const std::string& name, F method) {
    static_assert(AnyMethod<F>, "only methods can be registered for a type");
    using Owner = typename Signature<F>::owner;
    static_assert(std::is_base_of_v<Owner, T> || detail::PointsTo<T, Owner>,
                  "it is no method of this type, of a base of it or of what it points to");
    registry_.add_callable<T>(name_ + "." + name, method);
    is_begun_ = true;
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

  // See FunctionRegistry::callable_by. After a constructor or a method it is that one's rule, in
  // place of the type's; before the first it is the type's: that of all that follow, and of having
  // a copy of a value (to_here). A reference that others hold all the same they can pass on and
  // drop.
  //
  //   registry.type<Table>("Table").callable_by({"trainer"})
  //       .constructor<int64_t>().method("reset", &Table::reset).callable_by({"master"});
  Type& callable_by(std::vector<std::string> callers) {
    if (is_begun_)
      registry_.callable_by(std::move(callers));
    else
      registry_.type_callers_[typeid(T)] = CallerRule(std::move(callers));
    return *this;
  }

 private:
  FunctionRegistry& registry_;
  const std::string name_;
  bool is_begun_ = false;  // something of it was registered
};

}  // namespace rehearsal
