#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/interned_strings.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/functions/operator_call.h"
#include "core/functions/operator_names.h"
#include "core/functions/pure_operators.h"
#include "tests/core/functions/drawn_arguments.h"
#include "tests/core/functions/operator_fuzz.h"
#include "tests/core/functions/spoiled_examples.h"

namespace rehearsal {
namespace {

std::vector<std::string> pure_names() {
  std::vector<std::string> names;
  for (const OperatorFamily& family : pure_operators()) {
    std::string_view rest = family.names;
    while (!rest.empty()) {
      const std::string_view name = rest.substr(0, rest.find(' '));
      if (!name.empty()) names.push_back("aten::" + std::string(name));
      rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    }
  }
  return names;
}

std::vector<FuzzCase> drawn_cases() {
  std::vector<FuzzCase> cases;
  for (const std::string& name : pure_names())
    cases.push_back({name, [name](uint64_t seed) {
                       return drawn_arguments(operators_named(name).front().schema(), seed,
                                              static_cast<int>(seed % kBadnessMax));
                     }});
  return cases;
}

std::vector<FuzzCase> spoiled_cases() {
  std::vector<FuzzCase> cases;
  for (const Example& example : operator_examples())
    cases.push_back({example.name, [example](uint64_t seed) {
                       return seed == 0 ? example.make() : spoiled_arguments(example, seed);
                     }});
  return cases;
}

TEST(OperatorAttacks, NoArgumentsMakeAnAllowedOperatorLeaveItsMemory) {
  // Goal: nothing is read or written outside of tensors, nothing is shown that was never written,
  // and nothing takes more memory than it may. Method: memory that ends where it may not be
  // touched, and is filled with another byte the second time.
  EXPECT_EQ(fuzz(drawn_cases(), {.draws = 6, .guarded = true}), "");
}

TEST(OperatorAttacks, NoFaultInAnExampleMakesItsOperatorLeaveItsMemory) {
  EXPECT_EQ(fuzz(spoiled_cases(), {.draws = 16, .guarded = true}), "");
}

TEST(OperatorAttacks, NoArgumentsMakeAnAllowedOperatorEndTheProcess) {
  // Goal: the same with oneDNN and LibTorch's own memory, as it is used.
  EXPECT_EQ(fuzz(drawn_cases(), {.draws = 6, .guarded = false}), "");
}

TEST(OperatorAttacks, NoFaultInAnExampleEndsTheProcess) {
  EXPECT_EQ(fuzz(spoiled_cases(), {.draws = 16, .guarded = false}), "");
}

TEST(OperatorAttacks, TheExamplesSucceed) {
  // Goal: faults are put where the operator goes far; each is of an operator of the table.
  for (const Example& example : operator_examples()) {
    EXPECT_TRUE(AllowedOperators().contains(example.name)) << example.name;
    EXPECT_FALSE(outcome(example.name, example.make()).starts_with("refused")) << example.name;
  }
}

TEST(OperatorAttacks, AnOperatorThatTrustsItsArgumentsIsFound) {
  // Goal: the method sees memory that nobody wrote, and an index that nobody checks.
  AllowedOperators allowed;
  allowed.add("aten::empty.memory_format");
  allowed.add("aten::embedding_dense_backward");
  const auto found = [&](FuzzCase one) {
    return fuzz({std::move(one)}, {.draws = 1, .guarded = true, .allowed = allowed});
  };
  EXPECT_EQ(found({"aten::empty.memory_format",
                   [](uint64_t) { return std::vector<c10::IValue>{c10::List<int64_t>({4})}; }}),
            "aten::empty.memory_format shows memory that nobody wrote, seed 0\n");
  // A sanitizer ends it in its own way.
  const std::string crash =
      found({"aten::embedding_dense_backward", [](uint64_t) {
               return std::vector<c10::IValue>{at::ones({1, 2}), at::full({1}, 1 << 30, at::kLong),
                                               3, -1, true};
             }});
  EXPECT_TRUE(crash.starts_with("aten::embedding_dense_backward ended the process by ")) << crash;
}

TEST(OperatorAttacks, WhateverIsNotInTheTableIsRefused) {
  // Goal: of all operators of LibTorch, only those of the table, and none that writes, is internal,
  // or belongs to a library. Method: all that the dispatcher has.
  const AllowedOperators allowed;
  std::set<std::string> table;
  for (const std::string& name : pure_names()) EXPECT_TRUE(table.insert(name).second) << name;
  size_t found = 0;
  for (const c10::OperatorName& known : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string name = c10::toString(known);
    // A name without overload stands for those that are allowed, if it has such.
    const bool stands_for_some =
        known.overload_name.empty() &&
        std::ranges::any_of(operators_named(name), [&](const c10::OperatorHandle& overload) {
          return table.contains(full_name(overload));
        });
    const bool is_allowed = !check_operator(name, allowed).has_value();
    EXPECT_EQ(is_allowed, table.contains(name) || stands_for_some) << name;
    EXPECT_EQ(allowed.contains(name), table.contains(name)) << name;
    if (!table.contains(name)) continue;
    ++found;
    EXPECT_TRUE(name.starts_with("aten::") && name[6] != '_') << name;
    for (const c10::Argument& argument : operators_named(name).front().schema().arguments())
      EXPECT_FALSE(argument.alias_info() != nullptr && argument.alias_info()->isWrite()) << name;
  }
  EXPECT_EQ(found, table.size());
}

TEST(OperatorAttacks, TheAttacksOfOldAreRefusedByName) {
  // Goal: files, memory that was never written, strides as they are given, and what ended the
  // process; the text says how to allow it.
  for (const std::string name :
       {"aten::from_file", "aten::empty", "aten::empty.memory_format", "aten::empty_like",
        "aten::_reshape_alias", "aten::as_strided", "aten::set_.source_Storage",
        "inductor::_reinterpret_tensor", "aten::embedding_dense_backward", "aten::segment_reduce",
        "aten::sparse_coo_tensor.indices_size", "aten::resize_", "aten::native_batch_norm",
        "aten::add.out", "aten::add_.Tensor", "quantized::linear",
        "aten::scaled_dot_product_attention", "aten::histc", "aten::lcm"}) {
    const MaybeError refused = check_operator(name, AllowedOperators());
    ASSERT_TRUE(refused.has_value()) << name;
    EXPECT_EQ(refused->kind, ErrorKind::unknown_function);
    EXPECT_EQ(refused->text, "the operator '" + name +
                                 "' may not be called by name here: allow it with "
                                 "registry.operators({\"" +
                                 name + "\"}), or call it in a registered function");
  }
}

TEST(OperatorAttacks, NamesThatThereAreNotLeaveNothingBehind) {
  // Goal: LibTorch's table of symbols, which only grows, takes no name of a peer. Method: it
  // numbers its symbols in turn.
  const AllowedOperators allowed;
  EXPECT_TRUE(check_operator("rehearsal_test::none", allowed).has_value());
  const auto first = static_cast<c10::unique_t>(c10::Symbol::fromQualString("rehearsal_test::1"));
  for (int i = 0; i < 100; ++i)
    for (const std::string name : {"made_up::name", "aten::made_up", "a::b::made_up"})
      EXPECT_TRUE(check_operator(name + std::to_string(i), allowed).has_value());
  const auto second = static_cast<c10::unique_t>(c10::Symbol::fromQualString("rehearsal_test::2"));
  EXPECT_EQ(second, first + 1);
}

TEST(OperatorAttacks, AnOperatorOfALibraryThatIsLoadedLateIsAllowedAsAnyOther) {
  EXPECT_TRUE(check_operator("rehearsal_late::twice", {}).has_value());
  torch::Library library(torch::Library::DEF, "rehearsal_late", std::nullopt, __FILE__, __LINE__);
  library.def("twice(Tensor x) -> Tensor");
  library.def("twice.by(Tensor x, int factor) -> Tensor");
  EXPECT_TRUE(check_operator("rehearsal_late::twice", {}).has_value());
  AllowedOperators allowed;
  allowed.add("rehearsal_late::twice");
  EXPECT_FALSE(check_operator("rehearsal_late::twice", allowed).has_value());
  EXPECT_FALSE(check_operator("rehearsal_late::twice.by", allowed).has_value());
}

TEST(OperatorAttacks, ArgumentsThatKernelsTrustAreRefused) {
  // Goal: nothing ends the process of who serves the call. Method: what LibTorch does not check,
  // beside the like of it that it computes.
  const auto matrices = [](size_t count) {
    return c10::List<at::Tensor>(std::vector<at::Tensor>(count, at::eye(2)));
  };
  const at::Tensor lowest = at::tensor({INT64_MIN}, at::kLong);
  const at::Tensor below = at::tensor({int64_t{-1}}, at::kLong);
  const at::Tensor long_row =
      at::quantize_per_tensor(at::ones({1, 1, 1, 70'000}), 0.5, 3, at::kQUInt8);
  const std::string trunc = "trunc";
  const std::string truncated = "it does not truncate quotients of whole numbers";
  const std::string quantized = "it is not called by name with a quantized tensor";
  const std::string many = "it multiplies no more than 64 matrices, not 65";
  const auto expect_refused = [](const std::string& name, std::vector<c10::IValue> arguments,
                                 const std::string& why) {
    const std::string found = outcome(name, std::move(arguments));
    EXPECT_TRUE(found.starts_with("refused")) << name;
    EXPECT_NE(found.find(why), std::string::npos) << name << ": " << found;
  };
  for (const std::string name : {"aten::div", "aten::divide"}) {
    expect_refused(name + ".Tensor_mode", {lowest, below, trunc}, truncated);
    expect_refused(name + ".Scalar_mode", {lowest, -1, trunc}, truncated);
  }
  EXPECT_EQ(outcome("aten::div.Tensor_mode", {lowest, at::tensor({2.5F}), trunc}).size(),
            sizeof(float));
  EXPECT_EQ(outcome("aten::div.Tensor_mode", {lowest, below, std::string("floor")}).size(),
            sizeof(int64_t));
  for (const std::string name : {"aten::chain_matmul", "aten::linalg_multi_dot"}) {
    expect_refused(name, {matrices(65)}, many);
    EXPECT_EQ(outcome(name, {matrices(64)}).size(), 4 * sizeof(float)) << name;
  }
  expect_refused("aten::adaptive_avg_pool2d", {long_row, c10::List<int64_t>({1, 70'000})},
                 quantized);
  expect_refused("aten::add.Tensor", {at::ones({2}), long_row}, quantized);
  expect_refused("aten::cat", {c10::List<at::Tensor>({long_row, long_row}), 0}, quantized);
}

TEST(OperatorAttacks, AProgramAllowsOneOverloadOrAll) {
  AllowedOperators allowed;
  allowed.add("aten::empty.memory_format");
  EXPECT_FALSE(check_operator("aten::empty.memory_format", allowed).has_value());
  EXPECT_FALSE(check_operator("aten::empty", allowed).has_value());
  EXPECT_TRUE(check_operator("aten::empty.names", allowed).has_value());
  allowed.add("aten::empty");
  EXPECT_FALSE(check_operator("aten::empty.names", allowed).has_value());
  EXPECT_TRUE(check_operator("aten::empty_like", allowed).has_value());
  EXPECT_THROW(allowed.add("aten::no_such_operator"), std::invalid_argument);
  EXPECT_THROW(allowed.add("aten::*"), std::invalid_argument);
}

TEST(OperatorAttacks, MoreMemoryThanItMayIsRefusedBeforeItIsTaken) {
  // Goal: neither a size, nor a value in a tensor, nor a view of little memory.
  const c10::List<int64_t> huge({int64_t{1} << 40});
  const int64_t before = memory_peak();
  const auto refusal = [](const std::string& name, std::vector<c10::IValue> arguments) {
    return outcome(name, std::move(arguments));
  };
  for (const std::string& text :
       {refusal("aten::ones", {huge}), refusal("aten::expand", {at::ones(1), huge}),
        refusal("aten::expand", {at::ones(1), c10::List<int64_t>({int64_t{1} << 62})}),
        refusal("aten::bincount", {at::tensor({int64_t{1} << 40})}),
        refusal("aten::arange", {int64_t{1} << 40}), refusal("aten::eye", {int64_t{1} << 20}),
        refusal("aten::outer", {at::ones(1 << 15), at::ones(1 << 15)})})
    EXPECT_NE(text.find("it asks for "), std::string::npos) << text;
  EXPECT_LT(memory_peak() - before, 64 * 1024);
  EXPECT_NE(
      refusal("aten::unbind.int", {at::ones({int64_t{1} << 30, 0})}).find("tensors, more than"),
      std::string::npos);
  EXPECT_NE(refusal("aten::tensor_split.sections", {at::ones(0), int64_t{1} << 40})
                .find("tensors, more than"),
            std::string::npos);
  EXPECT_EQ(refusal("aten::ones", {c10::List<int64_t>({2})}).size(), 2 * sizeof(float));
}

}  // namespace
}  // namespace rehearsal
