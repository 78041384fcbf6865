// Values of every kind as arguments and results of calls.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

using Shape = std::variant<std::monostate, int64_t, std::string>;
using NamedTensors = std::unordered_map<std::string, at::Tensor>;

struct Older {
  int64_t number = 0;
  UnknownFields unknown;
  friend void describe(Older& value, auto&& fields) {
    fields.versioned("Options", value.unknown, value.number);
  }
};
struct Newer {
  int64_t number = 0;
  std::vector<RRef<int64_t>> references;
  at::Tensor tensor;
  UnknownFields unknown;
  friend void describe(Newer& value, auto&& fields) {
    fields.versioned("Options", value.unknown, value.number, value.references, value.tensor);
  }
};

at::Tensor echo(const at::Tensor& tensor) { return tensor; }
std::pair<NamedTensors, Shape> exchange(NamedTensors named, Shape shape) {
  return {std::move(named), shape};
}
double in_seconds(std::chrono::milliseconds time) {
  return static_cast<double>(time.count()) / 1000;
}
size_t count(const std::vector<at::Tensor>& tensors) { return tensors.size(); }
int64_t number() { return 41; }
void nothing() {}
Older through_older(Older value) {
  ++value.number;
  return value;
}
void take_any(const c10::IValue&) {}
c10::IValue give_any(int64_t size) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (int64_t i = 0; i < size; ++i)
    list.push_back(c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get()));
  return list;
}
int64_t take(bool, uint8_t small) { return small; }
std::unique_ptr<std::string> taken(std::unique_ptr<std::string> text) { return text; }

class ValueCallTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("echo", &echo).function("exchange", &exchange).function("count", &count);
    registry.function("in_seconds", &in_seconds)
        .function("number", &number)
        .function("take", &take)
        .function("take_any", &take_any)
        .function("give_any", &give_any);
    registry.function("nothing", &nothing);
    registry.function("through_older", &through_older).function("taken", &taken);
    registry.operators({"aten::_to_dense"});
    begin();
  }
};

TEST_F(ValueCallTest, AValueThatWouldHoldTooMuchMemoryFailsItsCallAlone) {
  // 400,000 empty dictionaries: 0.8 MB that would become 172 MB, more than 64 MiB and 16 times
  // that.
  constexpr int64_t kMany = 400'000;
  const auto why_not = [](auto call) -> Error {
    try {
      call();
    } catch (const RpcError& error) {
      return error.error();
    }
    return {.kind = ErrorKind::timeout, .text = "it was accepted"};
  };
  for (const Error& error : {why_not([&] { a().calls.rpc_sync("b", &take_any, give_any(kMany)); }),
                             why_not([&] { (void)a().calls.rpc_sync("b", &give_any, kMany); })}) {
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_NE(error.text.find("the values would hold more than"), std::string::npos) << error.text;
  }
  a().calls.rpc_sync("b", &take_any, give_any(1000));
  EXPECT_EQ(a().calls.rpc_sync("b", &number), 41);
}

TEST_F(ValueCallTest, TensorsOfEveryFormAreArgumentsAndResults) {
  const at::Tensor strided = at::arange(20).reshape({4, 5}).narrow(1, 1, 2);
  const at::Tensor strided_back = a().calls.rpc_sync("b", &echo, strided);
  EXPECT_FALSE(strided_back.is_contiguous());
  EXPECT_TRUE(at::equal(strided_back, strided));
  const at::Tensor sparse = at::eye(3).to_sparse();
  const at::Tensor sparse_back = a().calls.rpc_sync("b", &echo, sparse);
  EXPECT_TRUE(sparse_back.is_coalesced());
  EXPECT_TRUE(at::equal(sparse_back.to_dense(), at::eye(3)));
  const at::Tensor quantized = at::quantize_per_tensor(at::ones({3}), 0.1, 2, at::kQUInt8);
  EXPECT_EQ(a().calls.rpc_sync("b", &echo, quantized).q_scale(), 0.1);
}

TEST_F(ValueCallTest, OperatorsTakeSparseTensors) {
  const at::Tensor dense =
      a().calls.rpc_sync<at::Tensor>("b", "aten::_to_dense", at::eye(3).to_sparse());
  EXPECT_TRUE(at::equal(dense, at::eye(3)));
}

TEST_F(ValueCallTest, ContainersAndVariantsAreArgumentsAndResults) {
  const auto [named, shape] =
      a().calls.rpc_sync("b", &exchange, NamedTensors{{"x", at::ones(2)}}, Shape("text"));
  EXPECT_EQ(named.at("x").numel(), 2);
  EXPECT_EQ(std::get<std::string>(shape), "text");
  EXPECT_EQ(a().calls.rpc_sync("b", &in_seconds, std::chrono::seconds(3)), 3.0);
}

TEST_F(ValueCallTest, BorrowedMemoryMayChangeOnceTheCallReturned) {
  // The memory is overwritten before anything was delivered.
  std::vector<float> memory(100000, 1);
  const at::Tensor borrowed = at::from_blob(memory.data(), {100000}, at::kFloat);
  const Future<at::Tensor> echoed = a().calls.rpc_async("b", &echo, borrowed);
  std::fill(memory.begin(), memory.end(), 7.0f);
  EXPECT_EQ(echoed.wait().sum().item<double>(), 100000);
}

TEST_F(ValueCallTest, TenThousandTensorsAreOneArgument) {
  EXPECT_EQ(a().calls.rpc_sync("b", &count, std::vector<at::Tensor>(10000, at::ones(1))), 10000u);
}

TEST_F(ValueCallTest, AReferenceInAFieldThatIsUnknownIsKeptAndSentOn) {
  // a holds a reference to b's value, which passes through c in a field that c does not know.
  Newer value{.number = 1, .references = {}, .tensor = at::ones(3), .unknown = {}};
  value.references.push_back(a().calls.remote("b", &number));
  const Future<Newer> passed = a().calls.rpc_async<Newer>("c", "through_older", value);
  value.references.clear();
  const Newer back = passed.wait();
  EXPECT_EQ(back.number, 2);
  EXPECT_EQ(back.references.at(0).to_here(), 41);
  EXPECT_EQ(back.tensor.numel(), 3);
}

TEST_F(ValueCallTest, AnOperatorsResultIsOfATypeThatLibTorchKnows) {
  for (const char* const name : {"aten::neg", "aten::no_such_operator"}) {
    const Error error = error_of([&] { return a().calls.rpc_sync<Older>("b", name, at::ones(1)); });
    EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(error.text, "its result is asked for as a type that LibTorch does not know");
    EXPECT_EQ(error.function, name);
  }
  EXPECT_EQ(a().calls.rpc_sync<Unit>("b", "nothing"), Unit{});
}

TEST_F(ValueCallTest, AnArgumentThatCannotBeReadFailsItsCallAloneAndIsNamed) {
  Draft draft = function_draft(*a().caller, "b", &take, true, 1);
  draft.call.arguments = {};
  ValueWriter writer(draft.call.arguments);
  writer.count(1);
  writer.integer(256);
  const Result<Answer> answer = a().answer_to(std::move(draft));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().kind, ErrorKind::bad_arguments);
  EXPECT_EQ(answer.error().text, "argument 2: an integer out of its type's range");
  EXPECT_EQ(answer.error().worker, "b");
  EXPECT_EQ(answer.error().function, "take");
  EXPECT_EQ(a().calls.rpc_sync("b", &take, true, uint8_t{255}), 255);
}

TEST_F(ValueCallTest, ASparseTensorWhoseIndicesCannotBeFailsItsCallAlone) {
  const at::Tensor bad = at::_sparse_coo_tensor_unsafe(
      at::full({1, 1}, 9, at::kLong), at::ones(1), {3}, at::TensorOptions().layout(c10::kSparse));
  const Error error = error_of([&] { return a().calls.rpc_sync("b", &echo, bad); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_EQ(error.text.find("argument 1: a sparse tensor that cannot be: "), 0u) << error.text;
  EXPECT_EQ(a().calls.rpc_sync("b", &echo, at::ones(2)).numel(), 2);
}

}  // namespace
}  // namespace rehearsal
