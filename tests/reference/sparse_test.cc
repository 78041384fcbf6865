// Goal: sparse tensors travel wherever dense ones do. Method: the reference's tests with its sparse
// tensor, also before its elements are coalesced.
#include <ATen/ATen.h>

#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::sparse_test {
namespace {

using TensorRRef = RRef<at::Tensor>;

// 2 x 3, with three elements.
at::Tensor sparse(bool coalesced = true) {
  const at::Tensor indices = at::tensor({0, 1, 1, 2, 0, 2}, at::kLong).reshape({2, 3});
  const at::Tensor tensor = at::sparse_coo_tensor(indices, at::tensor({3.0, 4.0, 5.0}), {2, 3});
  return coalesced ? tensor.coalesce() : tensor;
}

// Whether it is so many times the tensor above, and is sparse.
bool is_times(double factor, const at::Tensor& tensor) {
  return tensor.is_sparse() && at::allclose(tensor.to_dense(), factor * sparse().to_dense());
}

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

at::Tensor add_three(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  return a + b + c;
}

at::Tensor add_all(const std::vector<at::Tensor>& all) { return all.at(0) + all.at(1); }

at::Tensor call_back(CallContext& context, const std::string& to) {
  return context.rpc_sync(to, &add, sparse(), sparse());
}

int64_t heavy(const at::Tensor& x) {
  at::Tensor y = x.clone();
  for (int64_t i = 1; i < 100; ++i) {
    y.mul_(i);
    y.div_(i + 1);
  }
  return 0;
}

at::Tensor add_to_reference(const TensorRRef& rref, const at::Tensor& x) {
  return rref.to_here() + x;
}

at::Tensor add_references(const TensorRRef& a, const TensorRRef& b) {
  return a.to_here() + b.to_here();
}

at::Tensor add_at_another(CallContext& context, const std::string& to) {
  return context.remote(to, &add, sparse(), sparse()).to_here();
}

std::vector<TensorRRef> two_at_another(CallContext& context, const std::string& to) {
  TensorRRef one = context.remote(to, &add, sparse(), sparse());
  TensorRRef other = context.remote(to, &add, sparse(), sparse());
  return {one, other};
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add)
      .function("add_three", &add_three)
      .function("add_all", &add_all)
      .function("call_back", &call_back)
      .function("heavy", &heavy)
      .function("add_to_reference", &add_to_reference)
      .function("add_references", &add_references)
      .function("add_at_another", &add_at_another)
      .function("two_at_another", &two_at_another);
  return registry;
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{test_send_to_rank_sparse, test_multi_rpc_sparse,
// Rows: test_py_sparse_tensors_in_container}
// Rows: cpp/test_wire_serialization::WireSerialize.DISABLED_Sparse
TEST(ReferenceSparse, ASparseTensorIsAnArgumentAndAResultInEveryMode) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string next = after(worker);
    for (const bool coalesced : {false, true}) {
      const at::Tensor x = sparse(coalesced);
      EXPECT_TRUE(is_times(2, worker.rpc_sync(next, &add, x, x)));
      EXPECT_TRUE(is_times(2, worker.rpc_async(next, &add, x, x).wait()));
      EXPECT_TRUE(is_times(2, worker.remote(next, &add, x, x).to_here()));
    }
    for (int64_t n = 0; n < 20; ++n)
      EXPECT_TRUE(is_times(2.0 * static_cast<double>(n),
                           worker.rpc_sync(next, &add, n * sparse(), n * sparse())));
    EXPECT_TRUE(is_times(2, worker.rpc_sync(next, &add_all, std::vector{sparse(), sparse()})));
  }));
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{test_nested_rpc_sparse, test_stress_heavy_rpc_sparse,
// Rows: test_world_size_one_sparse, test_wait_all_workers_sparse,
// Rows: test_wait_all_workers_twice_sparse}
TEST(ReferenceSparse, NestedAndHeavyCallsTakeSparseTensors) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    EXPECT_TRUE(is_times(2, worker.rpc_sync(after(worker), &call_back, worker.name())));
    if (worker.id().value != 0) return;
    for (const std::string to : {"worker1", "worker2"}) {
      std::vector<Future<int64_t>> calls;
      for (int i = 0; i < 5; ++i) calls.push_back(worker.rpc_async(to, &heavy, sparse()));
      for (const auto& call : calls) EXPECT_EQ(call.wait(), 0);
    }
  }));
  Program alone(functions());
  alone.worker("me", [](Worker& worker) {
    EXPECT_TRUE(is_times(2, worker.rpc_sync("me", &add, sparse(), sparse())));
    EXPECT_TRUE(is_times(2, worker.remote("me", &add, sparse(), sparse()).to_here()));
  });
  in_both_worlds(alone);
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{test_self_py_udf_remote_sparse,
// Rows: test_builtin_remote_self_sparse, test_builtin_remote_ret_sparse,
// Rows: test_multi_builtin_remote_ret_sparse, test_multi_py_udf_remote_sparse,
// Rows: test_nested_remote_sparse, test_nested_rref_sparse, test_nested_rref_stress_sparse}
TEST(ReferenceSparse, ReferencesToSparseTensors) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {worker.name(), after(worker)}) {
      EXPECT_TRUE(
          is_times(3, worker.remote(to, &add_three, sparse(), sparse(), sparse()).to_here()));
      EXPECT_TRUE(is_times(2, worker.remote(to, &add, sparse(), sparse()).to_here()));
    }
    std::vector<TensorRRef> many;
    for (int i = 0; i < 10; ++i)
      many.push_back(worker.remote(after(worker), &add, i * sparse(), i * sparse()));
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(is_times(2.0 * i, many[i].to_here()));
    EXPECT_TRUE(
        is_times(2, worker.remote(after(worker), &add_at_another, after(worker, 2)).to_here()));
    for (const TensorRRef& one :
         worker.remote(after(worker), &two_at_another, after(worker, 2)).to_here())
      EXPECT_TRUE(is_times(2, one.to_here()));
  }));
}

// Rows: rpc_test::TensorPipeAgentRpcTest.{test_self_remote_rref_as_rpc_arg_sparse,
// Rows: test_self_remote_rref_as_self_rpc_arg_sparse, test_self_remote_rref_as_remote_arg_sparse,
// Rows: test_self_remote_rref_as_self_remote_arg_sparse, test_py_rref_args_sparse,
// Rows: test_py_rref_args_user_share_sparse, test_py_rpc_rref_args_sparse}
TEST(ReferenceSparse, ReferencesToSparseTensorsAreArguments) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    for (const std::string& to : {worker.name(), after(worker)}) {
      const TensorRRef own = worker.remote(worker.name(), &add, sparse(), sparse());
      EXPECT_TRUE(is_times(3, worker.rpc_sync(to, &add_to_reference, own, sparse())));
      EXPECT_TRUE(is_times(3, worker.remote(to, &add_to_reference, own, sparse()).to_here()));
    }
    const TensorRRef a = worker.remote(after(worker), &add, sparse(), sparse());
    const TensorRRef b = worker.remote(after(worker), &add, sparse(), sparse());
    EXPECT_TRUE(is_times(4, worker.remote(after(worker), &add_references, a, b).to_here()));
    EXPECT_TRUE(is_times(4, worker.rpc_sync(after(worker), &add_references, a, b)));
    EXPECT_TRUE(is_times(4, worker.rpc_sync(after(worker, 2), &add_references, a, b)));
  }));
}

}  // namespace
}  // namespace rehearsal::reference::sparse_test
