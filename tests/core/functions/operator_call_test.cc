#include "core/functions/operator_call.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/List.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/functions/schema_arguments.h"
#include "core/functions/schema_ranges.h"

namespace rehearsal {
namespace {

Payload encoded(const SchemaArguments& arguments) {
  Payload payload;
  ValueWriter writer(payload);
  Value<SchemaArguments>::write(writer, arguments);
  return payload;
}

// The last arguments may be keywords.
template <class... A>
c10::IValue call(const std::string& name, const A&... arguments) {
  Payload payload = encoded(schema_arguments(arguments...));
  Returned returned = call_operator(name, payload, AllowedOperators(), kOperatorMemoryMax);
  return *static_cast<c10::IValue*>(std::get<HeldValue>(returned).value.get());
}

template <class... A>
Error refusal(const std::string& name, const A&... arguments) {
  try {
    (void)call(name, arguments...);
    return {.text = "accepted"};
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
}

bool same(const c10::IValue& given, const at::Tensor& expected) {
  return at::equal(given.toTensor(), expected);
}

TEST(OperatorCall, CallsAnOperatorAndFillsInDefaults) {
  EXPECT_TRUE(
      at::equal(call("aten::add.Tensor", at::ones(2), at::ones(2)).toTensor(), at::full({2}, 2.0)));
  EXPECT_TRUE(at::equal(call("aten::add.Tensor", at::ones(2), at::ones(2), 3).toTensor(),
                        at::full({2}, 4.0)));
}

TEST(OperatorCall, SeveralResultsAreATuple) {
  const c10::IValue both = call("aten::max.dim", at::arange(4), 0);
  ASSERT_TRUE(both.isTuple());
  EXPECT_EQ(both.toTupleRef().elements()[0].toTensor().item<int64_t>(), 3);
}

TEST(OperatorCall, ListsOptionsAndNumbersFitTheirSchema) {
  // Lists of tensors, of optional tensors, of integers; a whole number for a float; none.
  const at::Tensor tensor = at::arange(6).reshape({2, 3});
  EXPECT_EQ(call("aten::cat", c10::List<at::Tensor>({tensor, tensor})).toTensor().size(0), 4);
  EXPECT_EQ(call("aten::reshape", tensor, c10::List<int64_t>({3, 2})).toTensor().size(0), 3);
  c10::impl::GenericList indices(c10::AnyType::get());
  indices.push_back(c10::IValue());
  indices.push_back(at::tensor({2, 0}));
  const at::Tensor picked = call("aten::index.Tensor", tensor, indices).toTensor();
  EXPECT_TRUE(at::equal(picked, at::index_select(tensor, 1, at::tensor({2, 0}))));
  EXPECT_TRUE(at::equal(call("aten::dropout", tensor.to(at::kFloat), 0, false).toTensor(),
                        tensor.to(at::kFloat)));
  EXPECT_EQ(call("aten::zeros", c10::List<int64_t>({2, 2}), c10::IValue()).toTensor().numel(), 4);
}

TEST(OperatorCall, AnUnknownOperatorIsNamed) {
  EXPECT_FALSE(check_operator("aten::add.Tensor", AllowedOperators()).has_value());
  EXPECT_FALSE(check_operator("aten::relu", AllowedOperators()).has_value());
  for (const std::string name : {"aten::no_such_thing", "aten::add.NoOverload", "", "."}) {
    const auto error = check_operator(name, AllowedOperators());
    ASSERT_TRUE(error.has_value()) << name;
    EXPECT_EQ(error->kind, ErrorKind::unknown_function);
    EXPECT_NE(error->text.find("'" + name + "'"), std::string::npos);
  }
}

TEST(OperatorCall, ArgumentsThatDoNotFitAreRefusedBeforeTheCall) {
  const std::string schema = "; its schema is aten::relu(Tensor self) -> Tensor";
  const Error many = refusal("aten::relu", at::ones(1), 2);
  EXPECT_EQ(many.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(many.function, "aten::relu");
  EXPECT_EQ(many.text, "it takes 1 arguments, not 2" + schema);
  EXPECT_EQ(refusal("aten::relu").text, "the argument 'self' is missing" + schema);
  EXPECT_EQ(refusal("aten::relu", std::string("x")).text,
            "the argument 'self' is a Tensor, not a str" + schema);
  EXPECT_NE(refusal("aten::cat", c10::List<int64_t>({1})).text, "accepted");
  EXPECT_NE(refusal("aten::dropout", at::ones(1), 2.5, 7).text, "accepted");
}

TEST(OperatorCall, ArgumentsMayHaveNames) {
  // Goal: by name, in any order, also where positions could be; what is left out is the default.
  const at::Tensor a = at::ones(2);
  EXPECT_TRUE(same(call("aten::add.Tensor", a, a, kwarg("alpha", 2)), at::full({2}, 3.0)));
  EXPECT_TRUE(same(call("aten::add.Tensor", kwarg("other", a), kwarg("self", a)), a + a));
  const c10::IValue both = call("aten::max.dim", at::arange(4), 0, kwarg("keepdim", true));
  EXPECT_EQ(both.toTupleRef().elements()[0].toTensor().dim(), 1);
  const c10::IValue made = call("aten::zeros", c10::List<int64_t>({2}), kwarg("dtype", at::kLong),
                                kwarg("device", "cpu"));
  EXPECT_EQ(made.toTensor().scalar_type(), at::kLong);
}

TEST(OperatorCall, AKeywordThatDoesNotFitIsRefusedWithTheSchema) {
  const at::Tensor a = at::ones(2);
  const std::string schema =
      "; its schema is aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
  const Error unknown = refusal("aten::add.Tensor", a, a, kwarg("beta", 2));
  EXPECT_EQ(unknown.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(unknown.function, "aten::add.Tensor");
  EXPECT_EQ(unknown.text, "it has no argument named 'beta'" + schema);
  EXPECT_EQ(refusal("aten::add.Tensor", a, a, kwarg("self", a)).text,
            "the argument 'self' is given twice" + schema);
  EXPECT_EQ(refusal("aten::add.Tensor", a, a, kwarg("alpha", 1), kwarg("alpha", 2)).text,
            "the argument 'alpha' is given twice" + schema);
  EXPECT_EQ(refusal("aten::add.Tensor", a, kwarg("alpha", 1)).text,
            "the argument 'other' is missing" + schema);
  EXPECT_EQ(refusal("aten::add.Tensor", a, a, kwarg("alpha", "much")).text,
            "the argument 'alpha' is a Scalar, not a str" + schema);
  EXPECT_NE(refusal("aten::zeros", c10::List<int64_t>({2}), kwarg("device", "nowhere")).text,
            "accepted");
}

TEST(OperatorCall, ANameWithoutOverloadIsTheOverloadThatFits) {
  // Goal: the arguments choose; the one without a name comes first; numbers stand for lists.
  const at::Tensor a = at::arange(6, at::kFloat).reshape({2, 3});
  EXPECT_FALSE(check_operator("aten::add", AllowedOperators()).has_value());
  EXPECT_TRUE(same(call("aten::add", a, a, kwarg("alpha", 2)), 3 * a));
  EXPECT_TRUE(same(call("aten::add", a, 1), a + 1));
  EXPECT_TRUE(same(call("aten::max", a), at::max(a)));
  EXPECT_TRUE(same(call("aten::max", a, -a), at::max(a, -a)));
  EXPECT_TRUE(call("aten::max", a, 0).isTuple());
  EXPECT_TRUE(same(call("aten::sum", a, 0), at::sum(a, {0})));
  EXPECT_TRUE(same(call("aten::relu", -a), at::zeros({2, 3})));
}

TEST(OperatorCall, OverloadsThatDoNotFitAreAllNamed) {
  const Error none = refusal("aten::add", std::string("x"));
  EXPECT_EQ(none.kind, ErrorKind::bad_arguments);
  EXPECT_TRUE(none.text.starts_with("none of its overloads fits:\n")) << none.text;
  for (const std::string overload : {"aten::add.Tensor(", "aten::add.Scalar("})
    EXPECT_NE(none.text.find(overload), std::string::npos) << overload;
  EXPECT_EQ(none.text.find("aten::add.out("), std::string::npos);
}

TEST(OperatorCall, SeveralOverloadsThatFitAlikeAreRefusedByName) {
  // Goal: nothing is guessed. Method: None is the dimension of two overloads.
  const Error several = refusal("aten::std", at::ones(1), c10::IValue());
  EXPECT_EQ(several.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(several.text,
            "several of its overloads fit: write which you mean: aten::std.correction "
            "aten::std.dim");
}

TEST(OperatorCall, WhatOnlyTorchScriptHasIsNoOperator) {
  // Goal: none of the interpreter's own, some of which write files.
  EXPECT_TRUE(check_operator("aten::save", AllowedOperators()).has_value());
  EXPECT_TRUE(check_operator("aten::add.str", AllowedOperators()).has_value());
  EXPECT_TRUE(check_operator("prim::Print", AllowedOperators()).has_value());
  EXPECT_TRUE(check_operator("aten::", AllowedOperators()).has_value());
  EXPECT_TRUE(check_operator("::add", AllowedOperators()).has_value());
  EXPECT_TRUE(check_operator("a::b::c", AllowedOperators()).has_value());
}

TEST(OperatorCall, WhatTheOperatorThrowsIsLibTorchsError) {
  EXPECT_THROW((void)call("aten::mm", at::ones({2, 2}), at::ones({3, 3})), c10::Error);
}

TEST(OperatorCall, ANumberThatIsNoneOfAnEnumerationIsRefused) {
  // Goal: LibTorch looks tables up with such numbers, unchecked, and would end the process.
  const c10::List<int64_t> two({2});
  for (const int64_t wrong :
       {int64_t{999}, int64_t{-1}, INT64_MAX, static_cast<int64_t>(c10::ScalarType::Undefined)}) {
    const Error refused = refusal("aten::ones", two, kwarg("dtype", wrong));
    EXPECT_EQ(refused.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(refused.function, "aten::ones");
    EXPECT_NE(refused.text.find("the argument 'dtype' is " + std::to_string(wrong) +
                                ", which is no number of a c10::ScalarType: they go from 0 to "),
              std::string::npos)
        << refused.text;
  }
  EXPECT_NE(refusal("aten::ones", two, kwarg("layout", 99)).text.find("c10::Layout"),
            std::string::npos);
  EXPECT_NE(refusal("aten::clone", at::ones(2), kwarg("memory_format", -2))
                .text.find("c10::MemoryFormat"),
            std::string::npos);
  EXPECT_EQ(call("aten::ones", two, kwarg("dtype", c10::IValue())).toTensor().numel(), 2);
}

TEST(OperatorCall, AListOfDeclaredLengthIsNotEmpty) {
  // Goal: LibTorch reads so many elements; where an empty list is the default, it means something.
  const at::Tensor image = at::ones({1, 2, 4, 4});
  const c10::List<int64_t> none;
  const c10::List<int64_t> two({2, 2});
  const Error refused = refusal("aten::max_pool2d", image, none);
  EXPECT_TRUE(refused.text.starts_with(
      "the argument 'kernel_size' is an empty list: it has 2 elements; its schema is "))
      << refused.text;
  EXPECT_EQ(call("aten::max_pool2d", image, two, none).toTensor().size(3), 2);
  EXPECT_TRUE(same(call("aten::sum.dim_IntList", at::ones({2, 2}), none), at::full({}, 4.0)));
}

TEST(OperatorCall, WhatIsSoonDoneRunsAtOnceAndAllElseOnAStack) {
  // Goal: nothing that a call says holds up whoever keeps the links alive. Method: operators that
  // work by element, on few and on many of them, and others, whose numbers set their time.
  const auto placed = [](const std::string& name, const auto&... arguments) {
    return placement_of_operator(name, encoded(schema_arguments(arguments...)));
  };
  const at::Tensor few = at::ones({16, 16});
  for (const std::string name : {"aten::add.Tensor", "aten::add", "aten::max", "aten::sum",
                                 "aten::where.self", "aten::eq.Tensor", "aten::exp"})
    EXPECT_EQ(placed(name, few, few), StackPlacement::inline_) << name;
  EXPECT_EQ(placed("aten::add", at::Tensor(), at::ones(1 << 20)), StackPlacement::pool);
  EXPECT_EQ(placed("aten::add", at::ones({1 << 12, 1}), at::ones({1, 1 << 12})),
            StackPlacement::pool);
  EXPECT_EQ(placed("aten::sum", at::ones({int64_t{1} << 30, 0})), StackPlacement::pool);
  for (const std::string name :
       {"aten::matmul", "aten::linalg_multi_dot", "aten::conv1d", "aten::randperm", "aten::where",
        "aten::diff", "aten::nothing", "other::add", "aten::ad", "aten::add.T"})
    EXPECT_EQ(placed(name, few, few), StackPlacement::pool) << name;
}

}  // namespace
}  // namespace rehearsal
