#include "core/rpc/operator_call.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/List.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rehearsal {
namespace {

Payload arguments_of(const std::vector<c10::IValue>& arguments) {
  Payload payload;
  ValueWriter writer(payload);
  Value<std::vector<c10::IValue>>::write(writer, arguments);
  return payload;
}

c10::IValue call(const std::string& name, const std::vector<c10::IValue>& arguments) {
  Payload payload = arguments_of(arguments);
  Returned returned = call_operator(name, payload);
  return *static_cast<c10::IValue*>(std::get<HeldValue>(returned).value.get());
}

Error refusal(const std::string& name, const std::vector<c10::IValue>& arguments) {
  try {
    (void)call(name, arguments);
    return {.text = "accepted"};
  } catch (const RpcError& thrown) {
    return thrown.error();
  }
}

TEST(OperatorCall, CallsAnOperatorAndFillsInDefaults) {
  EXPECT_TRUE(at::equal(call("aten::add.Tensor", {at::ones(2), at::ones(2)}).toTensor(),
                        at::full({2}, 2.0)));
  EXPECT_TRUE(at::equal(call("aten::add.Tensor", {at::ones(2), at::ones(2), 3}).toTensor(),
                        at::full({2}, 4.0)));
}

TEST(OperatorCall, SeveralResultsAreATuple) {
  const c10::IValue both = call("aten::max.dim", {at::arange(4), 0});
  ASSERT_TRUE(both.isTuple());
  EXPECT_EQ(both.toTupleRef().elements()[0].toTensor().item<int64_t>(), 3);
}

TEST(OperatorCall, ListsOptionsAndNumbersFitTheirSchema) {
  // Lists of tensors, of optional tensors, of integers; a whole number for a float; none.
  const at::Tensor tensor = at::arange(6).reshape({2, 3});
  EXPECT_EQ(call("aten::cat", {c10::List<at::Tensor>({tensor, tensor})}).toTensor().size(0), 4);
  EXPECT_EQ(call("aten::reshape", {tensor, c10::List<int64_t>({3, 2})}).toTensor().size(0), 3);
  c10::impl::GenericList indices(c10::AnyType::get());
  indices.push_back(c10::IValue());
  indices.push_back(at::tensor({2, 0}));
  const at::Tensor picked = call("aten::index.Tensor", {tensor, indices}).toTensor();
  EXPECT_TRUE(at::equal(picked, at::index_select(tensor, 1, at::tensor({2, 0}))));
  EXPECT_TRUE(at::equal(call("aten::dropout", {tensor.to(at::kFloat), 0, false}).toTensor(),
                        tensor.to(at::kFloat)));
  EXPECT_EQ(call("aten::zeros", {c10::List<int64_t>({2, 2}), c10::IValue()}).toTensor().numel(), 4);
}

TEST(OperatorCall, AnUnknownOperatorIsNamed) {
  EXPECT_FALSE(check_operator("aten::add.Tensor").has_value());
  EXPECT_FALSE(check_operator("aten::relu").has_value());
  for (const std::string name : {"aten::no_such_thing", "aten::add.NoOverload", "", "."}) {
    const auto error = check_operator(name);
    ASSERT_TRUE(error.has_value()) << name;
    EXPECT_EQ(error->kind, ErrorKind::unknown_function);
    EXPECT_NE(error->text.find("'" + name + "'"), std::string::npos);
  }
}

TEST(OperatorCall, ArgumentsThatDoNotFitAreRefusedBeforeTheCall) {
  const Error many = refusal("aten::relu", {at::ones(1), 2});
  EXPECT_EQ(many.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(many.function, "aten::relu");
  EXPECT_EQ(many.text, "the operator takes 1 arguments, not 2");
  EXPECT_EQ(refusal("aten::relu", {}).text, "the argument 'self' is missing");
  EXPECT_EQ(refusal("aten::relu", {std::string("x")}).text,
            "the argument 'self' is a Tensor, not a str");
  EXPECT_NE(refusal("aten::cat", {c10::List<int64_t>({1})}).text, "accepted");
  EXPECT_NE(refusal("aten::dropout", {at::ones(1), 2.5, 7}).text, "accepted");
}

TEST(OperatorCall, WhatTheOperatorThrowsIsLibTorchsError) {
  EXPECT_THROW((void)call("aten::mm", {at::ones({2, 2}), at::ones({3, 3})}), c10::Error);
}

TEST(OperatorCall, SmallOnesRunAtOnceAndLargeOnesOnAStack) {
  EXPECT_EQ(where_of_operator(arguments_of({at::ones(16)})), Where::inline_);
  EXPECT_EQ(where_of_operator(arguments_of({at::Tensor(), at::ones(1 << 20)})), Where::pool);
}

}  // namespace
}  // namespace rehearsal
