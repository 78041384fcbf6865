#include "core/values/tensor_form.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Dimname.h>
#include <ATen/quantized/Quantizer.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

// Tensors as values, through the bytes of a message.
class TensorFormTest : public ::testing::Test {
 protected:
  std::shared_ptr<const FrameBody> encoded(const at::Tensor& tensor) {
    return codec_->encode(Message{Response{{}, written(tensor), {}, {}}});
  }
  at::Tensor decoded(const FrameBody& body) {
    Result<Message> message = codec_->decode(body);
    if (!message.ok()) throw std::runtime_error(message.error().text);
    return read<at::Tensor>(std::get<Response>(std::move(message).value().content).value);
  }
  at::Tensor through(const at::Tensor& tensor) { return decoded(*encoded(tensor)); }
  // The same as the value of a stream, which is protobuf.
  at::Tensor through_protobuf(const at::Tensor& tensor) {
    const auto body = codec_->encode(Message{Item{{}, 1, written(tensor)}});
    Result<Message> message = codec_->decode(*body);
    if (!message.ok()) throw std::runtime_error(message.error().text);
    return read<at::Tensor>(std::get<Item>(std::move(message).value().content).value);
  }
  uint64_t segment_bytes(const at::Tensor& tensor) {
    const auto body = encoded(tensor);
    uint64_t bytes = 0;
    for (const Segment& segment : body->segments) bytes += segment.bytes;
    return bytes;
  }

  const std::unique_ptr<Codec> codec_ = make_protobuf_codec();
};

// ---- strides -------------------------------------------------------------------

TEST_F(TensorFormTest, AViewArrivesContiguousExactlyIfItWas) {
  // Rows, columns, transposed, narrowed, with steps; with and without gaps.
  const at::Tensor matrix = at::arange(10000).reshape({100, 100});
  const at::Tensor images = at::arange(2 * 3 * 4 * 5).reshape({2, 3, 4, 5});
  for (const at::Tensor& view :
       {matrix[7], matrix.select(1, 7), matrix.t(), matrix.narrow(1, 2, 2), matrix.narrow(0, 2, 2),
        matrix.slice(0, 0, 100, 7), matrix.slice(1, 0, 100, 7).t(), matrix.narrow(1, 2, 1),
        images.contiguous(at::MemoryFormat::ChannelsLast), images.permute({3, 0, 2, 1}),
        images.select(2, 1), images.narrow(3, 1, 2).permute({1, 0, 3, 2}), matrix.diagonal()}) {
    for (const at::Tensor& back : {through(view), through_protobuf(view)}) {
      EXPECT_EQ(back.is_contiguous(), view.is_contiguous()) << view.strides();
      EXPECT_TRUE(at::equal(back, view)) << view.strides();
      EXPECT_EQ(segment_bytes(view), static_cast<uint64_t>(view.numel()) * 8);
      EXPECT_LE(back.storage().nbytes(), 2 * segment_bytes(view));
    }
  }
}

TEST_F(TensorFormTest, StridesWithoutGapsStayAndGapsBecomeOneElement) {
  const at::Tensor images =
      at::arange(2 * 3 * 4 * 5).reshape({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  EXPECT_EQ(through(images).strides(), images.strides());
  EXPECT_TRUE(through(images).is_contiguous(at::MemoryFormat::ChannelsLast));
  const at::Tensor matrix = at::arange(10000).reshape({100, 100});
  EXPECT_EQ(through(matrix.narrow(1, 2, 5)).strides(), at::IntArrayRef({6, 1}));
  EXPECT_EQ(through(matrix.select(1, 3)).strides(), at::IntArrayRef({2}));
  EXPECT_EQ(through(matrix.narrow(1, 2, 5).t()).strides(), at::IntArrayRef({1, 6}));
}

// Rows: cpp/test_wire_serialization::WireSerialize.{RecopySparseTensors, CloneSparseTensors}
// Rows: cpp/test_tensorpipe_serialization::TensorpipeSerialize.RecopySparseTensors
TEST_F(TensorFormTest, ARowOfALargeMatrixTakesItsOwnBytesOnly) {
  const at::Tensor row = at::ones({1024, 1024}).select(0, 2);
  EXPECT_LT(encoded(row)->bytes(), 4096u + 1024u);
  EXPECT_LT(encoded(at::ones({1024, 1024}).select(1, 2))->bytes(), 4096u + 1024u);
}

TEST_F(TensorFormTest, ALargeTensorIsNotCopiedHoweverItIsPermuted) {
  const at::Tensor large = at::zeros({100, 200, 30});
  for (const at::Tensor& view : {large, large.permute({2, 0, 1}), large[3].t()})
    EXPECT_EQ(encoded(view)->segments.at(0).data, view.data_ptr());
}

TEST_F(TensorFormTest, ElementsThatOverlapArriveContiguous) {
  const at::Tensor one = at::arange(8);
  for (const at::Tensor& view :
       {at::ones({1}).expand({5, 4}), one.as_strided({3, 4}, {2, 1}), one.unfold(0, 4, 1)}) {
    const at::Tensor back = through(view);
    EXPECT_TRUE(back.is_contiguous());
    EXPECT_TRUE(at::equal(back, view));
  }
}

TEST_F(TensorFormTest, StridesKeepTheGradientAndEveryType) {
  const at::Tensor leaf = at::ones({4, 3}).t().set_requires_grad(true);
  EXPECT_TRUE(through(leaf).requires_grad());
  EXPECT_TRUE(through(leaf).is_leaf());
  for (const c10::ScalarType type :
       {at::kBool, at::kHalf, at::kComplexDouble, at::kUInt16, at::kFloat8_e4m3fn}) {
    const at::Tensor view = at::arange(12).remainder(2).to(type).reshape({4, 3}).narrow(1, 0, 2);
    const at::Tensor back = through(view);
    EXPECT_FALSE(back.is_contiguous());
    EXPECT_TRUE(at::equal(back.to(at::kComplexDouble), view.to(at::kComplexDouble))) << type;
  }
}

TEST_F(TensorFormTest, EveryTypeBelowFourBytesComesBackAsItsBytes) {
  for (const c10::ScalarType type :
       {at::kFloat8_e5m2, at::kFloat8_e4m3fn, at::kFloat8_e5m2fnuz, at::kFloat8_e4m3fnuz,
        at::kFloat8_e8m0fnu, at::kBFloat16, at::kHalf, at::kUInt16, at::kChar, at::kByte}) {
    const at::Tensor tensor = at::arange(240, at::kByte).view(type);
    EXPECT_TRUE(at::equal(through(tensor).view(at::kByte), tensor.view(at::kByte))) << type;
  }
}

TEST_F(TensorFormTest, AZeroTensorAndLazyViewsOfComplexOnesComeBack) {
  EXPECT_TRUE(at::equal(through(at::_efficientzerotensor({3})), at::zeros(3)));
  const at::Tensor complex = at::complex(at::rand({3, 2}), at::rand({3, 2}));
  for (const at::Tensor& view :
       {at::conj(complex), at::conj(complex).t(), at::imag(at::conj(complex)),
        at::conj(complex).narrow(1, 0, 1), at::real(complex)})
    EXPECT_TRUE(at::equal(through(view), view));
}

TEST_F(TensorFormTest, LayoutsWithoutAFormAreRefused) {
  const at::Tensor nested = at::_nested_tensor_from_tensor_list({at::ones(2), at::ones(3)});
  EXPECT_EQ(refusal_to_write(nested), "a nested tensor cannot be sent: send its parts (unbind)");
  EXPECT_EQ(refusal_to_write(at::ones({2, 2}).to_mkldnn()),
            "a tensor of layout Mkldnn cannot be sent: make it dense (to_dense)");
}

TEST_F(TensorFormTest, ATensorThatMeansMoreThanItsElementsIsRefused) {
  // Goal: neither names of dimensions nor a tangent are lost in silence. Method: each alone, one
  // name of two, in a list; without them the same tensor is sent.
  const at::Dimname row = at::Dimname::fromSymbol(at::Symbol::dimname("row"));
  const at::Tensor named = at::ones({2, 3}).refine_names({row, at::Dimname::wildcard()});
  const std::string refused = refusal_to_write(named);
  EXPECT_EQ(refused.substr(0, refused.find(':')),
            "a tensor whose dimensions have names cannot be sent");
  EXPECT_EQ(refusal_to_write(std::vector<at::Tensor>{at::ones(1), named}), refused);
  EXPECT_EQ(refusal_to_write(named.rename(std::nullopt)), "accepted");
  const uint64_t level = torch::autograd::forward_ad::enter_dual_level();
  const at::Tensor dual = at::_make_dual(at::ones({2}), at::ones({2}), static_cast<int64_t>(level));
  EXPECT_EQ(refusal_to_write(dual),
            "a dual tensor cannot be sent: send its primal and its tangent (at::_unpack_dual)");
  torch::autograd::forward_ad::exit_dual_level(level);
  EXPECT_EQ(refusal_to_write(dual), "accepted");
}

TEST_F(TensorFormTest, MemoryThatWasFreedIsRefused) {
  const at::Tensor tensor = at::ones({4});
  tensor.storage().unsafeGetStorageImpl()->reset();
  EXPECT_EQ(refusal_to_write(tensor), "a tensor whose storage has been freed cannot be sent");
}

// ---- borrowed memory -----------------------------------------------------------

// Rows: cpp/test_tensorpipe_serialization::TensorpipeSerialize.NoDeleterTensors
TEST_F(TensorFormTest, BorrowedMemoryIsCopiedWhenTheTensorIsWritten) {
  // Small and large; changed before the message is encoded.
  for (const int64_t size : {4, 100000}) {
    std::vector<float> memory(size, 1);
    const at::Tensor borrowed = at::from_blob(memory.data(), {size}, at::kFloat);
    const Payload payload = written(borrowed);
    const Payload sparse = written(at::sparse_coo_tensor(at::arange(size).unsqueeze(0), borrowed));
    std::fill(memory.begin(), memory.end(), 2.0f);
    EXPECT_EQ(payload.tensors.at(0).sum().item<double>(), size);
    EXPECT_EQ(sparse.tensors.at(0).to_dense().sum().item<double>(), size);
  }
}

TEST_F(TensorFormTest, MemoryWithAnOwnerIsShared) {
  std::vector<float> memory(100000, 1);
  bool released = false;
  at::Tensor owned = at::from_blob(
      memory.data(), {100000}, [&](void*) { released = true; }, at::kFloat);
  Payload payload = written(owned);
  EXPECT_TRUE(payload.tensors.at(0).is_same(owned));
  owned.reset();
  EXPECT_FALSE(released);
  payload = {};
  EXPECT_TRUE(released);
}

TEST_F(TensorFormTest, BorrowedTensorsKeepTheirGradients) {
  float memory[] = {1, 2};
  const at::Tensor leaf = at::from_blob(memory, {2}, at::kFloat).set_requires_grad(true);
  const Payload recorded = written(leaf);
  EXPECT_TRUE(recorded.tensors.at(0).requires_grad());
  EXPECT_FALSE(recorded.tensors.at(0).is_leaf());  // Gradients pass on to the leaf.
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(written(leaf).tensors.at(0).requires_grad());
}

// ---- sparse --------------------------------------------------------------------

TEST_F(TensorFormTest, SparseTensorsComeBackAndStayCoalescedOrNot) {
  const at::Tensor indices = at::tensor({0, 2, 0, 1, 1, 1}, at::kLong).reshape({2, 3});
  const at::Tensor uncoalesced = at::sparse_coo_tensor(indices, at::ones({3}), {3, 4});
  const at::Tensor hybrid = at::sparse_coo_tensor(indices, at::ones({3, 2, 5}), {3, 4, 2, 5});
  const at::Tensor empty = at::sparse_coo_tensor({1000000, 1000000}, at::kFloat);
  for (const at::Tensor& tensor : {uncoalesced, hybrid, uncoalesced.coalesce(), hybrid.coalesce(),
                                   at::eye(4).to_sparse(), at::eye(4).to_sparse(1), empty})
    for (const at::Tensor& back : {through(tensor), through_protobuf(tensor)}) {
      EXPECT_EQ(back.layout(), c10::kSparse);
      EXPECT_EQ(back.is_coalesced(), tensor.is_coalesced());
      EXPECT_EQ(back.sizes(), tensor.sizes());
      EXPECT_EQ(back.sparse_dim(), tensor.sparse_dim());
      EXPECT_TRUE(at::equal(back._indices(), tensor._indices()));
      EXPECT_TRUE(at::equal(back._values(), tensor._values()));
    }
}

TEST_F(TensorFormTest, ASparseTensorKeepsItsGradientAndSharesItsMemory) {
  const at::Tensor values = at::ones({100000});
  const at::Tensor tensor = at::sparse_coo_tensor(at::arange(100000).unsqueeze(0), values);
  EXPECT_EQ(encoded(tensor)->segments.at(1).data, tensor._values().data_ptr());
  const at::Tensor leaf = tensor.detach().set_requires_grad(true);
  EXPECT_TRUE(through(leaf).requires_grad());
  EXPECT_TRUE(through(leaf).is_leaf());
}

TEST_F(TensorFormTest, CompressedTensorsComeBackInEachLayout) {
  const at::Tensor dense = at::eye(6) + at::ones({6}).diag(0).roll(1, 0);
  for (const at::Tensor& tensor :
       {dense.to_sparse_csr(), dense.to_sparse_csc(), dense.to_sparse_bsr({2, 3}),
        dense.to_sparse_bsc({3, 2}), at::zeros({4, 5}).to_sparse_csr(),
        at::stack({dense, dense}).to_sparse_csr(), dense.unsqueeze(2).to_sparse_csr(1),
        at::stack({dense, dense}).to_sparse_bsr({3, 3})})
    for (const at::Tensor& back : {through(tensor), through_protobuf(tensor)}) {
      EXPECT_EQ(back.layout(), tensor.layout());
      EXPECT_EQ(back.sizes(), tensor.sizes());
      EXPECT_TRUE(at::equal(back.values(), tensor.values()));
      EXPECT_TRUE(at::equal(back.to_dense(), tensor.to_dense()));
    }
}

TEST_F(TensorFormTest, IndicesOutOfRangeFailTheCallAlone) {
  // The message is well-formed; what its tensor says is not.
  const auto unsafe = [](const std::vector<int64_t>& indices, bool is_coalesced) {
    const at::Tensor rows = at::tensor(indices, at::kLong).unsqueeze(0);
    const at::Tensor values = at::ones({static_cast<int64_t>(indices.size())});
    return at::_sparse_coo_tensor_unsafe(rows, values, {3}, values.options().layout(c10::kSparse),
                                         is_coalesced);
  };
  const auto refused = [&](const at::Tensor& tensor) {
    const auto body = encoded(tensor);
    Result<Message> message = codec_->decode(*body);
    EXPECT_TRUE(message.ok()) << message.error().text;
    return refusal<at::Tensor>(std::get<Response>(std::move(message).value().content).value);
  };
  const std::string cannot_be = "a sparse tensor that cannot be: ";
  EXPECT_EQ(refused(unsafe({0, 2}, true)), "accepted");
  EXPECT_EQ(refused(unsafe({0, 3}, false)).substr(0, cannot_be.size()), cannot_be);
  EXPECT_EQ(refused(unsafe({-1, 2}, false)).substr(0, cannot_be.size()), cannot_be);
  EXPECT_EQ(refused(unsafe({2, 0}, true)).substr(0, cannot_be.size()), cannot_be);
  EXPECT_EQ(refused(unsafe({1, 1}, true)).substr(0, cannot_be.size()), cannot_be);
  const at::Tensor numbers = at::tensor({0, 1, 7}, at::kLong);
  const at::Tensor csr = at::_sparse_compressed_tensor_unsafe(
      at::tensor({0, 1, 3}, at::kLong), numbers, at::ones({3}), {2, 4},
      at::TensorOptions(at::kFloat).layout(c10::kSparseCsr));
  EXPECT_EQ(refused(csr).substr(0, cannot_be.size()), cannot_be);
}

// ---- quantised -----------------------------------------------------------------

TEST_F(TensorFormTest, QuantizedTensorsComeBackExactly) {
  // By tensor and by channel, transposed and empty ones, zero points that are no whole numbers.
  const at::Tensor numbers = at::linspace(-1, 1, 24).reshape({4, 6});
  const at::Tensor scales = at::tensor({0.1, 0.3, 1.0 / 3, 0.7}, at::kDouble);
  const at::Tensor points = at::tensor({0, 1, 2, 3}, at::kLong);
  std::vector<at::Tensor> tensors = {at::quantize_per_channel(
      numbers, scales.to(at::kFloat), points.to(at::kFloat) + 0.5, 0, at::kQUInt8)};
  for (const c10::ScalarType type : {at::kQInt8, at::kQUInt8, at::kQInt32}) {
    tensors.push_back(at::quantize_per_tensor(numbers, 1.0 / 3, 3, type));
    tensors.push_back(tensors.back().t());
    tensors.push_back(at::quantize_per_channel(numbers, scales, points, 0, type));
    tensors.push_back(at::quantize_per_tensor(at::empty({0, 4}), 0.5, 1, type));
  }
  for (const at::Tensor& tensor : tensors)
    for (const at::Tensor& back : {through(tensor), through_protobuf(tensor)}) {
      EXPECT_EQ(back.scalar_type(), tensor.scalar_type());
      EXPECT_EQ(back.qscheme(), tensor.qscheme());
      EXPECT_EQ(back.sizes(), tensor.sizes());
      EXPECT_TRUE(at::equal(back.int_repr(), tensor.int_repr()));
      EXPECT_TRUE(at::equal(back.dequantize(), tensor.dequantize()));
      if (tensor.qscheme() == c10::kPerTensorAffine) {
        EXPECT_EQ(back.q_scale(), tensor.q_scale());
        EXPECT_EQ(back.q_zero_point(), tensor.q_zero_point());
      } else {
        EXPECT_EQ(back.q_per_channel_axis(), 0);
        EXPECT_TRUE(at::equal(back.q_per_channel_scales(), tensor.q_per_channel_scales()));
        EXPECT_TRUE(
            at::equal(back.q_per_channel_zero_points(), tensor.q_per_channel_zero_points()));
      }
    }
}

TEST_F(TensorFormTest, ALargeQuantizedTensorIsNotCopied) {
  const at::Tensor large = at::quantize_per_tensor(at::rand({100000}), 0.01, 3, at::kQInt8);
  EXPECT_EQ(encoded(large)->segments.at(0).data, large.data_ptr());
}

TEST_F(TensorFormTest, QuantizedTensorsBelowAByteAreRefused) {
  const at::Tensor scales = at::ones({4});
  const at::Tensor tensor =
      at::quantize_per_channel(at::rand({4, 6}), scales, at::zeros({4}), 0, at::kQUInt4x2);
  EXPECT_EQ(refusal_to_write(tensor),
            "a quantized tensor of type QUInt4x2 cannot be sent: dequantize it");
}

TEST_F(TensorFormTest, AZeroPointThatItsTypeDoesNotHoldIsRefused) {
  const at::Tensor tensor = at::_make_per_tensor_quantized_tensor(at::ones({2}, at::kChar), 1, 300);
  EXPECT_EQ(refusal_to_write(tensor),
            "a quantized tensor whose zero point its type does not hold cannot be sent");
  const at::Tensor channels = at::_make_per_channel_quantized_tensor(
      at::ones({2}, at::kChar), at::ones({2}, at::kDouble), at::full({2}, 300, at::kLong), 0);
  EXPECT_EQ(refusal<at::Tensor>(written(channels)),
            "a quantized tensor whose zero points its type does not hold");
}

// ---- many, and in calls --------------------------------------------------------

TEST_F(TensorFormTest, TenThousandTensorsTravelInOneMessage) {
  std::vector<at::Tensor> tensors;
  for (int64_t i = 0; i < 10000; ++i) tensors.push_back(at::full({i % 3}, i));
  const auto body = codec_->encode(Message{Response{{}, written(tensors), {}, {}}});
  Result<Message> message = codec_->decode(*body);
  ASSERT_TRUE(message.ok()) << message.error().text;
  const auto back =
      read<std::vector<at::Tensor>>(std::get<Response>(std::move(message).value().content).value);
  ASSERT_EQ(back.size(), 10000u);
  for (size_t i = 0; i < back.size(); ++i) ASSERT_TRUE(at::equal(back[i], tensors[i])) << i;
}

TEST_F(TensorFormTest, MoreSegmentsThanAMessageHoldsAreRefused) {
  // A sparse tensor is several.
  const std::vector<at::Tensor> sparse(kSegmentCountMax / 4 + 1, at::eye(2).to_sparse());
  EXPECT_NE(refusal_to_write(sparse).find("too much for one message"), std::string::npos);
}

}  // namespace
}  // namespace rehearsal
