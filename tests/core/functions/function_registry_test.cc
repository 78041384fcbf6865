#include "core/functions/function_registry.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "core/api/call_context.h"
#include "core/calls/served_calls.h"

namespace rehearsal {
namespace {

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }
int64_t half(int64_t number) { return number / 2; }
double half(double number) { return number / 2; }
template <class T>
T twice(T value) {
  return value + value;
}
void nothing(const std::string& text, std::vector<int32_t>) { (void)text; }
std::string with_context(CallContext&, uint8_t number) { return std::to_string(number); }
int64_t careful(int32_t number) noexcept { return number; }
Future<std::string> later(const std::string&) { return {}; }
std::shared_ptr<int> unsendable() { return std::make_shared<int>(3); }

struct Base {
  explicit Base(int64_t start) : value(start) {}
  virtual ~Base() = default;
  int64_t plus(int64_t by) { return value += by; }
  virtual int32_t hook(double) { return 0; }
  int64_t value;
};
struct Other {
  int64_t other() const { return tag; }
  int64_t tag = 77;
};
struct Shared {
  std::string shared() const { return text; }
  std::string text = "shared";
};
struct Derived : Base, Other, virtual Shared {
  explicit Derived(int64_t start) : Base(start) {}
  Derived(const std::string& text, int64_t start) : Base(start) { this->text = text; }
  Derived() : Base(0) {}
  int64_t plain() const noexcept { return value; }
};

// A function with an address that both sides know is callable; one without is not.
const auto kLambda = [](int64_t number) { return number; };
static_assert(Callable<decltype(&add)>);
static_assert(Callable<decltype(&careful)>);
static_assert(Callable<decltype(&Derived::plain)>);
static_assert(!Callable<decltype(kLambda)>);
static_assert(!Callable<std::function<int64_t(int64_t)>>);
static_assert(!Callable<int64_t>);
static_assert(!CallableFunction<decltype(kLambda)>);
static_assert(!CallableFunction<std::function<int64_t(int64_t)>>);
static_assert(CallableFunction<decltype(&add)> && !CallableMethod<decltype(&add)>);
static_assert(CallableMethod<decltype(&Base::plus)> && !CallableFunction<decltype(&Base::plus)>);
static_assert(std::is_same_v<ResultOf<decltype(&nothing)>, Unit>);
static_assert(std::is_same_v<ResultOf<decltype(&later)>, std::string>);

// Calls an entry with encoded arguments.
template <class... A>
Returned call(const Function& function, void* object, const A&... arguments) {
  Payload payload;
  ValueWriter writer(payload);
  (Value<A>::write(writer, arguments), ...);
  CallContext context(Calls(nullptr, nullptr),
                      std::make_shared<const ServedCall>(WorkerId{}, Call{}));
  return function.invoke({context, object, payload});
}
template <class T, class... A>
T result_of(const Function& function, void* object, const A&... arguments) {
  Returned returned = call(function, object, arguments...);
  return *static_cast<T*>(std::get<HeldValue>(returned).value.get());
}
const Function& at(const FunctionRegistry& registry, Result<uint32_t> position) {
  return registry.functions().at(std::move(position).or_throw());
}
template <class F>
std::string refusal_of(F register_it) {
  try {
    register_it();
    return "accepted";
  } catch (const std::invalid_argument& thrown) {
    return thrown.what();
  }
}

TEST(FunctionRegistry, FindsAFunctionByItsAddressAndByItsName) {
  FunctionRegistry registry;
  registry.function("add", &add).function("nothing", &nothing);
  const Function& function = at(registry, registry.position<void>(&add));
  EXPECT_EQ(function.name, "add");
  EXPECT_EQ(function.parameters, "Tensor,Tensor,");
  EXPECT_EQ(function.result, "Tensor");
  EXPECT_EQ(&at(registry, registry.position("add")), &function);
  EXPECT_EQ(at(registry, registry.position("nothing")).parameters, "bytes,[int32],");
  EXPECT_EQ(at(registry, registry.position("nothing")).result, "unit");
  EXPECT_EQ(registry.position("sub").error().kind, ErrorKind::unknown_function);
  EXPECT_EQ(registry.position<void>(&careful).error().kind, ErrorKind::unknown_function);
}

TEST(FunctionRegistry, CallsWithDecodedArguments) {
  FunctionRegistry registry;
  registry.function("add", &add).function("careful", &careful);
  registry.function("with_context", &with_context);
  const at::Tensor sum = result_of<at::Tensor>(at(registry, registry.position("add")), nullptr,
                                               at::ones(2), at::ones(2));
  EXPECT_TRUE(at::equal(sum, at::full({2}, 2.0)));
  EXPECT_EQ(result_of<int64_t>(at(registry, registry.position("careful")), nullptr, 5), 5);
  // A leading CallContext& is given, not sent.
  const Function& context = at(registry, registry.position("with_context"));
  EXPECT_EQ(context.parameters, "uint8,");
  EXPECT_EQ(result_of<std::string>(context, nullptr, uint8_t{200}), "200");
}

TEST(FunctionRegistry, ArgumentsThatDoNotFitAreBadValues) {
  FunctionRegistry registry;
  registry.function("careful", &careful);
  const Function& function = at(registry, registry.position("careful"));
  EXPECT_THROW((void)call(function, nullptr), BadValue);
  EXPECT_THROW((void)call(function, nullptr, 1, 2), BadValue);
  EXPECT_THROW((void)call(function, nullptr, int64_t{1} << 40), BadValue);
}

TEST(FunctionRegistry, OverloadsAreToldApartByACast) {
  FunctionRegistry registry;
  registry.function("half_int", static_cast<int64_t (*)(int64_t)>(&half));
  registry.function("half_float", static_cast<double (*)(double)>(&half));
  const Function& whole =
      at(registry, registry.position<void>(static_cast<int64_t (*)(int64_t)>(&half)));
  const Function& real =
      at(registry, registry.position<void>(static_cast<double (*)(double)>(&half)));
  EXPECT_EQ(result_of<int64_t>(whole, nullptr, int64_t{5}), 2);
  EXPECT_EQ(result_of<double>(real, nullptr, 5.0), 2.5);
}

TEST(FunctionRegistry, InstancesOfATemplateAreFunctionsOfTheirOwn) {
  FunctionRegistry registry;
  registry.function("twice_int", &twice<int64_t>).function("twice_text", &twice<std::string>);
  EXPECT_EQ(registry.position<void>(&twice<std::string>).value(), 1u);
  EXPECT_FALSE(registry.position<void>(&twice<double>).ok());
  const Function& whole = at(registry, registry.position<void>(&twice<int64_t>));
  const Function& text = at(registry, registry.position<void>(&twice<std::string>));
  EXPECT_EQ(result_of<int64_t>(whole, nullptr, int64_t{5}), 10);
  EXPECT_EQ(result_of<std::string>(text, nullptr, std::string("ab")), "abab");
}

TEST(FunctionRegistry, ANameAndAnAddressCanBeTakenOnce) {
  FunctionRegistry registry;
  registry.function("add", &add);
  EXPECT_EQ(refusal_of([&] { registry.function("add", &careful); }),
            "a function named 'add' is registered already");
  EXPECT_EQ(refusal_of([&] { registry.function("plus", &add); }),
            "'plus' has the address of 'add': register it once, or link without folding equal "
            "functions (--icf=safe)");
  registry.type<Base>("Base").method("plus", &Base::plus);
  EXPECT_NE(refusal_of([&] { registry.type<Base>("Base").method("also", &Base::plus); }),
            "accepted");
  EXPECT_EQ(refusal_of([&] { registry.type<Base>("Sub"); }),
            "the type 'Sub' is registered as 'Base'");
  EXPECT_EQ(refusal_of([] { FunctionRegistry().runs_inline(); }),
            "runs_inline comes after a function");
}

TEST(FunctionRegistry, InheritedMethodsAreCalledOnTheRegisteredType) {
  // Methods of the first, second and virtual base, each through a pointer to the derived object.
  FunctionRegistry registry;
  registry.type<Derived>("Derived")
      .method("plus", &Base::plus)
      .method("other", &Other::other)
      .method("shared", &Shared::shared)
      .method("plain", &Derived::plain);
  Derived object(10);
  EXPECT_EQ(result_of<int64_t>(at(registry, registry.position<Derived>(&Base::plus)), &object,
                               int64_t{5}),
            15);
  EXPECT_EQ(result_of<int64_t>(at(registry, registry.position("Derived.other")), &object), 77);
  EXPECT_EQ(result_of<std::string>(at(registry, registry.position("Derived.shared")), &object),
            "shared");
  EXPECT_EQ(result_of<int64_t>(at(registry, registry.position("Derived.plain")), &object), 15);
  EXPECT_TRUE(at(registry, registry.position("Derived.plain")).object_type == typeid(Derived));
  // The same method of another registered type is another function.
  EXPECT_FALSE(registry.position<Base>(&Base::plus).ok());
  registry.type<Base>("Base").method("plus", &Base::plus);
  EXPECT_EQ(at(registry, registry.position<Base>(&Base::plus)).name, "Base.plus");
}

TEST(FunctionRegistry, AConstructorIsChosenByItsArgumentsWhateverTheirWidth) {
  FunctionRegistry registry;
  registry.type<Derived>("Derived").constructor<int64_t>().constructor<std::string, int64_t>();
  const Function& one = at(registry, registry.constructor(typeid(Derived), "int32,"));
  EXPECT_TRUE(one.is_constructor);
  EXPECT_EQ(result_of<Derived>(one, nullptr, int32_t{4}).value, 4);
  const Function& two = at(registry, registry.constructor(typeid(Derived), "bytes,uint8,"));
  EXPECT_EQ(result_of<Derived>(two, nullptr, std::string("t"), uint8_t{6}).text, "t");
}

TEST(FunctionRegistry, AConstructorThatDoesNotExistListsThoseThatDo) {
  FunctionRegistry registry;
  registry.type<Derived>("Derived").constructor<int64_t>().constructor<std::string, int64_t>();
  const Error error = registry.constructor(typeid(Derived), "Tensor,").error();
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(error.text,
            "no constructor of Derived takes (Tensor,); there are: Derived(int64,) "
            "Derived(bytes,int64,)");
  registry.type<Base>("Base");
  EXPECT_EQ(registry.constructor(typeid(Base), "").error().text,
            "no constructor of Base takes (); there are: none");
  EXPECT_EQ(registry.constructor(typeid(Other), "").error().text,
            "this type is not registered: rehearsal::(anonymous namespace)::Other; add it to the "
            "program's FunctionRegistry by type<T>(\"name\")");
}

TEST(FunctionRegistry, WhatIsNotRegisteredIsNamed) {
  // Goal: the error says which function. Method: a function, a method, and a virtual method, whose
  // address is not in its pointer.
  const FunctionRegistry registry;
  const Error function = registry.position<void>(&careful).error();
  EXPECT_EQ(function.function, "rehearsal::(anonymous namespace)::careful(int)");
  EXPECT_EQ(function.text, "this function is not registered: " + function.function +
                               "; add it to the program's FunctionRegistry");
  const std::string base = "rehearsal::(anonymous namespace)::Base";
  EXPECT_EQ(registry.position<Base>(&Base::plus).error().text,
            "this function is not registered: " + base + "::plus(long); add it as a method of " +
                base + " to the program's FunctionRegistry");
  EXPECT_EQ(registry.position<Base>(&Base::hook).error().function,
            "one of type int (" + base + "::*)(double)");
}

TEST(FunctionRegistry, LooseSignaturesForgetWidthsOnly) {
  EXPECT_EQ(FunctionRegistry::loosen("int64,uint8,[int32],float32,float64,bytes,Tensor,"),
            "int,int,[int],float,float,bytes,Tensor,");
  EXPECT_EQ(FunctionRegistry::loosen("{int16:?uint64}"), "{int:?int}");
  EXPECT_EQ(FunctionRegistry::loosen(""), "");
  EXPECT_NE(FunctionRegistry::loosen("int64,"), FunctionRegistry::loosen("float64,"));
}

TEST(FunctionRegistry, DescribesItselfWithoutAddressesOrTypeNames) {
  // Two registries that were filled alike give the same text, in the order of registration.
  const auto fill = [] {
    FunctionRegistry registry;
    registry.function("add", &add);
    registry.type<Derived>("D").constructor<int64_t>().method("plain", &Derived::plain);
    return registry.describe();
  };
  EXPECT_EQ(fill(),
            "add (Tensor,Tensor,) -> Tensor\nD(int64,) (int64,) ->  constructor\n"
            "D.plain () -> int64\n");
  EXPECT_EQ(fill(), fill());
}

TEST(FunctionRegistry, OptionsBelongToTheFunctionRegisteredLast) {
  FunctionRegistry registry;
  registry.function("add", &add).function("careful", &careful).runs_inline();
  registry.type<Derived>("D").method("plus", &Base::plus).parallel().runs_inline();
  EXPECT_EQ(registry.functions()[0].placement, StackPlacement::pool);
  EXPECT_EQ(registry.functions()[1].placement, StackPlacement::inline_);
  EXPECT_FALSE(registry.functions()[1].is_parallel);
  EXPECT_TRUE(registry.functions()[2].is_parallel);
  EXPECT_EQ(registry.functions()[2].placement, StackPlacement::inline_);
}

TEST(FunctionRegistry, AResultThatCannotBeSentHasNoSignature) {
  // It can still become the value of a reference.
  FunctionRegistry registry;
  registry.function("unsendable", &unsendable).function("later", &later);
  EXPECT_EQ(at(registry, registry.position("unsendable")).result, "");
  EXPECT_EQ(at(registry, registry.position("later")).result, "bytes");
  const Returned returned = call(at(registry, registry.position("unsendable")), nullptr);
  EXPECT_EQ(std::get<HeldValue>(returned).type->write, nullptr);
}

TEST(FunctionRegistry, AnEmptyFutureIsAnErrorOfTheFunction) {
  FunctionRegistry registry;
  registry.function("later", &later);
  EXPECT_THROW((void)call(at(registry, registry.position("later")), nullptr, std::string("x")),
               std::logic_error);
}

}  // namespace
}  // namespace rehearsal
