// Goal: references keep their types wherever they go, and at the owner a fetch, a local value and a
// method mean the same object or a copy of it, as they say. Method: the reference's tests of typed
// references in compiled functions, as plain functions.
#include <ATen/ATen.h>

#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::typed_references_test {
namespace {

using TensorRRef = RRef<at::Tensor>;

at::Tensor square(double value) { return at::full({2, 2}, value); }

at::Tensor twice(const at::Tensor& x) { return 2 * x; }

bool is_owner_here(const TensorRRef& rref) { return rref.is_owner(); }

at::Tensor local_of(const TensorRRef& rref) { return rref.local_value(); }

TensorRRef hand_back(const TensorRRef& rref) { return rref; }

struct Numbers {
  void append(int64_t number) { all.push_back(number); }
  std::vector<int64_t> read() { return all; }
  std::vector<int64_t> all;
};

// Appends to the value itself, at its owner.
int64_t append_locally(const RRef<Numbers>& numbers, int64_t number) {
  numbers.local_value().append(number);
  return number;
}

// Holds four references.
struct Holder {
  Holder(const TensorRRef& a, const TensorRRef& b, const RRef<TensorRRef>& c, const TensorRRef& d)
      : a(a), b(b), c(c), d(d) {}
  at::Tensor sum(const at::Tensor& x) {
    return x + a.to_here() + b.to_here() + c.to_here().to_here() + d.to_here();
  }
  TensorRRef a, b;
  RRef<TensorRRef> c;
  TensorRRef d;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("twice", &twice)
      .function("is_owner_here", &is_owner_here)
      .function("local_of", &local_of)
      .function("hand_back", &hand_back)
      .function("append_locally", &append_locally);
  registry.type<Numbers>("Numbers")
      .constructor<>()
      .method("append", &Numbers::append)
      .method("read", &Numbers::read);
  registry.type<Holder>("Holder")
      .constructor<TensorRRef, TensorRRef, RRef<TensorRRef>, TensorRRef>()
      .method("sum", &Holder::sum);
  return registry;
}

// Rows: jit/rpc_test::RRefAPITest.{test_rref_is_owner, test_rref_local_value,
// Rows: test_local_rref_local_value}
TEST(ReferenceTypedReferences, OnlyTheOwnerHasTheValueItself) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const TensorRRef there = worker.remote(after(worker), &twice, square(1));
    EXPECT_FALSE(there.is_owner());
    EXPECT_TRUE(worker.rpc_sync(after(worker), &is_owner_here, there));
    EXPECT_FALSE(worker.rpc_sync(after(worker, 2), &is_owner_here, there));
    EXPECT_TRUE(at::equal(worker.rpc_sync(after(worker), &local_of, there), square(2)));
    EXPECT_EQ(kind_of([&] { worker.rpc_sync(after(worker, 2), &local_of, there); }),
              ErrorKind::bad_arguments);
    EXPECT_TRUE(at::equal(worker.rref(square(3)).local_value(), square(3)));
  }));
}

// Rows: jit/rpc_test::RRefAPITest.test_rref_list_mutate
TEST(ReferenceTypedReferences, TheLocalValueIsTheValue) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const RRef<Numbers> numbers = worker.remote<Numbers>(after(worker));
    for (const int64_t number : {1, 3, 5}) {
      numbers.rpc_sync(&Numbers::append, number);
      EXPECT_EQ(worker.rpc_sync(after(worker), &append_locally, numbers, number + 1), number + 1);
    }
    EXPECT_EQ(numbers.rpc_sync(&Numbers::read), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  }));
}

// Rows: jit/rpc_test::RRefTypingTest.{test_rref_as_arg_and_return,
// Rows: test_my_script_module_with_rrefs, test_rref_python_annotation}
TEST(ReferenceTypedReferences, ReferencesToReferencesAndObjectsThatHoldThem) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string to = after(worker);
    const TensorRRef there = worker.remote(after(worker, 2), &twice, square(1));
    const TensorRRef returned = worker.rpc_sync(to, &hand_back, there);
    EXPECT_EQ(returned, there);
    EXPECT_TRUE(at::equal(returned.to_here(), square(2)));
    const RRef<TensorRRef> twofold = worker.remote(to, &hand_back, there);
    EXPECT_TRUE(at::equal(twofold.to_here().to_here(), square(2)));
    const auto holder = worker.remote<Holder>(to, there, returned, twofold, there);
    EXPECT_TRUE(at::equal(holder.rpc_sync(&Holder::sum, square(1)), square(9)));
  }));
}

}  // namespace
}  // namespace rehearsal::reference::typed_references_test
