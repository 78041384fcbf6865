#include "core/values/sent_tensor.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/values/value_io.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

std::string refusal_of(const std::vector<at::Tensor>& tensors) {
  try {
    (void)written(tensors);
    return "accepted";
  } catch (const BadValue& bad) {
    return bad.what();
  }
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(SentTensor, SmallElementsAreCopiedAndLargeOnesAreShared) {
  // A payload that is ready is independent of a small tensor, and shows changes of a large one.
  const at::Tensor small = at::ones({8});
  const at::Tensor large = at::ones({10000});
  const Payload payload = written(std::vector{small, large});
  ASSERT_EQ(payload.sent.size(), 2u);
  small.zero_();
  large.zero_();
  EXPECT_EQ(*reinterpret_cast<const float*>(payload.sent[0].elements.data), 1.0f);
  EXPECT_EQ(payload.sent[1].elements.data, static_cast<std::byte*>(large.data_ptr()));
  EXPECT_EQ(payload.sent[0].elements.bytes, 32u);
  EXPECT_EQ(sent_bytes(payload.sent), 40032u);
}

TEST(SentTensor, MoreBytesThanAFrameHoldsAreRefusedBeforeAnyIsCopied) {
  // Sizes alone decide: one expanded tensor of 2^41 bytes, and two that are too much together.
  const at::Tensor one = at::ones({1}, at::kByte);
  EXPECT_TRUE(contains(refusal_of({one.expand(int64_t{1} << 41)}), "2^40 bytes"));
  const at::Tensor half = one.expand((int64_t{1} << 39) + 1);
  const std::string refused = refusal_of({half, half});
  EXPECT_TRUE(contains(refused, "too much for one message: tensors of more than ")) << refused;
}

TEST(SentTensor, ATensorOfWhichLibTorchCannotMakeACopyIsRefusedWithItsReason) {
  // An allocation that fails is a value that cannot be sent, and the hint says what would do.
  const std::string refused = refusal_of({at::ones({1}, at::kByte).expand(int64_t{1} << 39)});
  if (refused == "accepted") GTEST_SKIP() << "this machine hands out memory that it has not";
  EXPECT_TRUE(contains(refused, "a tensor of sizes [549755813888] cannot be encoded: ")) << refused;
  EXPECT_TRUE(contains(refused,
                       "it is expanded, and is sent as 549755813888 bytes: send what it "
                       "is expanded from"))
      << refused;
}

TEST(SentTensor, PartsThatDoNotFitEachOtherAreRefusedBeforeTheyLeave) {
  // A receiver would break with whoever sends them.
  const at::Tensor misfit = at::_sparse_compressed_tensor_unsafe(
      at::zeros({2}, at::kLong), at::zeros({1}, at::kLong), at::ones({1}), {4, 4},
      at::TensorOptions(at::kFloat).layout(at::kSparseCsr));
  EXPECT_TRUE(contains(refusal_of({misfit}), "whose parts do not fit each other"));
}

TEST(SentTensor, ZeroTensorsAndViewsWithAFlagAreSentAsTheirElements) {
  for (const at::Tensor& tensor :
       {at::_efficientzerotensor({2, 3}), at::complex(at::ones(2), at::ones(2)).conj(),
        at::complex(at::ones(2), at::ones(2))._neg_view()}) {
    const Payload payload = written(tensor);
    ASSERT_EQ(payload.sent.size(), 1u);
    EXPECT_EQ(payload.sent[0].elements.bytes, static_cast<uint64_t>(tensor.nbytes()));
  }
}

}  // namespace
}  // namespace rehearsal
