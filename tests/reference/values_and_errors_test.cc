// Goal: what is sent arrives as a copy that equals it, whatever it is nested in, and what fails at
// the callee fails that call only, with its text. Method: the reference's tests of arguments.
#include <ATen/ATen.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::values_and_errors_test {
namespace {

// Nested containers of tensors that share one tensor.
struct Parts {
  std::vector<at::Tensor> list;
  std::map<std::string, std::vector<at::Tensor>> nested;
  at::Tensor alone;
  friend void describe(Parts& parts, auto&& fields) {
    fields(parts.list, parts.nested, parts.alone);
  }
};

using Sums = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

Sums add_up(std::vector<at::Tensor> list, const Parts& parts,
            const std::map<std::string, at::Tensor>& by_name) {
  for (const at::Tensor& one : list) list[0].add_(one);
  for (const auto& [name, one] : by_name) list[0].add_(one);
  return {list[0], parts.list.at(0), parts.nested.at("both").at(1), parts.alone};
}

// Rows: rpc_test::RpcTest.test_py_tensors_in_container
TEST(ReferenceValues, ContainersOfTensorsAreCopiesAtTheCallee) {
  FunctionRegistry registry;
  registry.function("add_up", &add_up);
  in_both_worlds(everywhere(std::move(registry), [](Worker& worker) {
    const int64_t n = worker.id().value + 1;
    const at::Tensor x = at::ones({n, n});
    const at::Tensor shared = at::ones({3, 3});
    const Parts parts{.list = {shared}, .nested = {{"both", {shared, shared}}}, .alone = shared};
    const auto [sum, first, second, third] =
        worker.rpc_sync(after(worker), &add_up, std::vector{x, x}, parts,
                        std::map<std::string, at::Tensor>{{"foo", x}, {"bar", x}});
    EXPECT_TRUE(at::equal(sum, 5 * x));
    for (const at::Tensor& part : {first, second, third}) EXPECT_TRUE(at::equal(part, shared));
    EXPECT_TRUE(at::equal(x, at::ones({n, n})));
  }));
}

// A type whose own encoding uses that of others.
struct Doubled {
  at::Tensor half;
};

at::Tensor add_to(const Doubled& doubled, const at::Tensor& other) {
  return doubled.half * 2 + other;
}

}  // namespace
}  // namespace rehearsal::reference::values_and_errors_test

template <>
struct rehearsal::Value<rehearsal::reference::values_and_errors_test::Doubled> {
  static void write(ValueWriter& writer,
                    const reference::values_and_errors_test::Doubled& doubled) {
    Value<std::vector<at::Tensor>>::write(writer, {doubled.half});
  }
  static reference::values_and_errors_test::Doubled read(ValueReader& reader) {
    return {Value<std::vector<at::Tensor>>::read(reader).at(0)};
  }
  static void sign(WireSignature& signature) { signature += "Doubled"; }
};

namespace rehearsal::reference::values_and_errors_test {
namespace {

// Rows: rpc_test::RpcTest.{test_py_nested_pickle, test_use_rpc_pickler}
// Rows: test_share_memory::TestRPCPickler.test_case
TEST(ReferenceValues, ATypeMayHaveAnEncodingOfItsOwnThatUsesOthers) {
  FunctionRegistry registry;
  registry.function("add_to", &add_to);
  in_both_worlds(everywhere(std::move(registry), [](Worker& worker) {
    const at::Tensor sum =
        worker.rpc_sync(after(worker), &add_to, Doubled{at::ones({2, 2})}, at::ones({2, 2}));
    EXPECT_TRUE(at::equal(sum, at::full({2, 2}, 3.0)));
  }));
}

int64_t raises(const std::string& text) { throw std::invalid_argument(text); }

int64_t one_argument(int64_t number) { return number; }

FunctionRegistry failing() {
  FunctionRegistry registry;
  registry.function("raises", &raises).function("one_argument", &one_argument);
  return registry;
}

// Rows: rpc_test::RpcTest.{test_py_raise_in_user_func, test_py_raise_in_user_func_escaped_str}
// Rows: jit/rpc_test::JitRpcOpTest.test_call_script_function_that_raises_remotely_from_script
TEST(ReferenceErrors, WhatTheCalleeThrowsIsThrownToTheCallerWithItsText) {
  in_both_worlds(everywhere(failing(), [](Worker& worker) {
    for (const std::string text : {"Expected error", "first line\nsecond line\n\ttabbed"}) {
      const Error error = error_of([&] { worker.rpc_sync(after(worker), &raises, text); });
      EXPECT_EQ(error.kind, ErrorKind::remote_exception);
      EXPECT_EQ(error.worker, after(worker));
      EXPECT_EQ(error.function, "raises");
      EXPECT_TRUE(contains(error.text, text)) << error.text;
      const auto later = worker.rpc_async(after(worker), &raises, text);
      EXPECT_TRUE(contains(error_of([&] { later.wait(); }).text, text));
    }
  }));
}

// Rows: rpc_test::RpcTest.{test_py_function_exception, test_function_not_on_callee}
// Rows: rpc_test::TensorPipeAgentRpcTest.test_op_with_invalid_args
// Rows: jit/rpc_test::JitRpcOpTest.{test_call_python_function_remotely_from_script_not_supported,
// Rows: test_call_script_function_that_not_exists_remotely_from_script}
TEST(ReferenceErrors, AWrongCallFailsAloneAndTheCalleeServesOn) {
  in_both_worlds(everywhere(failing(), [](Worker& worker) {
    const std::string next = after(worker);
    EXPECT_EQ(kind_of([&] { worker.rpc_sync<int64_t>(next, "nothing", 1); }),
              ErrorKind::unknown_function);
    const Error wrong = error_of([&] { worker.rpc_sync<int64_t>(next, "one_argument", 1, 2); });
    EXPECT_EQ(wrong.kind, ErrorKind::bad_arguments);
    EXPECT_TRUE(contains(wrong.text, "it is registered as (int64,) -> int64")) << wrong.text;
    EXPECT_EQ(kind_of([&] { worker.rpc_sync<at::Tensor>(next, "aten::add.Tensor"); }),
              ErrorKind::bad_arguments);
    EXPECT_EQ(kind_of([&] { worker.rpc_sync<at::Tensor>(next, "aten::no_such_operator"); }),
              ErrorKind::unknown_function);
    EXPECT_EQ(worker.rpc_sync<int64_t>(next, "one_argument", 3), 3);
  }));
}

at::Tensor check_view(const at::Tensor& view, const at::Tensor& compact) {
  if (!at::equal(view, compact)) throw std::logic_error("the view has other elements");
  if (view.is_contiguous()) throw std::logic_error("the view has become another layout");
  if (!compact.is_contiguous()) throw std::logic_error("a compact tensor arrived as a view");
  return view;
}

// Rows: rpc_test::RpcTest.test_non_cont_tensors
TEST(ReferenceValues, AViewArrivesWithItsElements) {
  FunctionRegistry registry;
  registry.function("check_view", &check_view);
  in_both_worlds(one_caller(std::move(registry), [](Worker& worker) {
    const at::Tensor whole = at::arange(25).reshape({5, 5});
    const at::Tensor view = whole.narrow(1, 2, 2);
    const at::Tensor back = worker.rpc_sync("worker1", &check_view, view, view.contiguous());
    EXPECT_TRUE(at::equal(back, view));
    EXPECT_FALSE(back.is_contiguous());
  }));
}

std::tuple<std::string, std::vector<at::Tensor>> echo(const std::string& text,
                                                      const std::vector<at::Tensor>& tensors) {
  return {text, tensors};
}

// Rows: cpp/test_wire_serialization::WireSerialize.Base
// Rows: cpp/test_tensorpipe_serialization::TensorpipeSerialize.Base
TEST(ReferenceValues, TextAndTensorsComeBackAsTheyWere) {
  FunctionRegistry registry;
  registry.function("echo", &echo);
  in_both_worlds(one_caller(std::move(registry), [](Worker& worker) {
    const at::Tensor integers = at::arange(1024, at::kInt);
    const at::Tensor floats = at::arange(1024).to(at::kFloat) / 3;
    for (const std::string text : {"", "hi", "more"})
      for (const auto& tensors :
           std::vector<std::vector<at::Tensor>>{{}, {integers}, {integers, floats}}) {
        const auto [same_text, same_tensors] = worker.rpc_sync("worker1", &echo, text, tensors);
        EXPECT_EQ(same_text, text);
        ASSERT_EQ(same_tensors.size(), tensors.size());
        for (size_t i = 0; i < tensors.size(); ++i) {
          EXPECT_EQ(same_tensors[i].dtype(), tensors[i].dtype());
          EXPECT_TRUE(at::equal(same_tensors[i], tensors[i]));
        }
      }
  }));
}

}  // namespace
}  // namespace rehearsal::reference::values_and_errors_test
