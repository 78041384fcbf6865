// Slips of users, and what the compiler tells them. Each line "// says: …" is a text that the
// errors of this file contain; check.cmake compiles it and looks.
#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"

namespace {

using namespace rehearsal;

struct Undescribed {
  int64_t number = 0;
};
// says: a value of this type cannot be sent: describe this struct's fields: add `friend
// says: ::Undescribed>
void takes_undescribed(const Undescribed&) {}

void takes_reference(int64_t&) {}
// says: parameters are values or const references
// says: CheckedParameter<long
void takes_pointer(at::Tensor*) {}
// says: CheckedParameter<at::Tensor

// says: a CallContext is the first parameter, written as CallContext&
void takes_const_context(const CallContext&) {}

struct WithoutDefault {
  explicit WithoutDefault(int64_t start) : number(start) {}
  int64_t number;
  friend void describe(WithoutDefault& value, auto&& fields) { fields(value.number); }
};
// says: a struct that describes its fields has a constructor without arguments
WithoutDefault gives_without_default() { return WithoutDefault(1); }

struct DescribedConst {
  int64_t number = 0;
  friend void describe(const DescribedConst& value, auto&& fields) { fields(value.number); }
};
// says: describe takes its struct by reference, not by const reference
void takes_described_const(const DescribedConst&) {}

struct AlsoUndescribed {};
AlsoUndescribed gives_undescribed() { return {}; }
// says: ::AlsoUndescribed>

int64_t doubled(int64_t number) { return 2 * number; }
// says: wrong number of arguments
// says: an argument is of another type than the function's parameter
// says: only functions can be registered: a lambda or std::function has no address

struct NeedsTwo {
  NeedsTwo(int64_t, int64_t) {}
};
// says: a worker's state is made from copies of the arguments of `state`

}  // namespace

void register_them(FunctionRegistry& registry) {
  registry.function("takes_undescribed", &takes_undescribed)
      .function("takes_reference", &takes_reference)
      .function("takes_pointer", &takes_pointer)
      .function("takes_const_context", &takes_const_context)
      .function("lambda", [](int64_t number) { return number; });
}

void call_them(Worker& worker) {
  worker.rpc_sync("ps", &gives_without_default);
  worker.rpc_sync("ps", &takes_described_const, DescribedConst());
  worker.rpc_sync("ps", &gives_undescribed);
  worker.rpc_sync("ps", &doubled);
  worker.rpc_sync("ps", &doubled, worker.name());
}

void declare_them(Program& program) { program.worker("ps").state<NeedsTwo>(int64_t{1}); }
