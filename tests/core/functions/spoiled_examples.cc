#include "tests/core/functions/spoiled_examples.h"

#include <ATen/Functions.h>
#include <ATen/core/List.h>

#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "tests/core/functions/drawn_arguments.h"

namespace rehearsal {
namespace {

using Arguments = std::vector<c10::IValue>;
using Sizes = std::vector<int64_t>;

// ---- examples -----------------------------------------------------------------

at::Tensor x(const Sizes& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::arange(1, count + 1, at::kFloat).div(4).reshape(sizes);
}

at::Tensor whole(const Sizes& values) { return at::tensor(values, at::kLong); }

at::Tensor whole(const Sizes& values, const Sizes& sizes) { return whole(values).reshape(sizes); }

at::Tensor positive(int64_t size) { return at::eye(size).mul(4).add(1); }

c10::IValue all(const Sizes& values) { return c10::List<int64_t>(values); }

c10::IValue tensors(std::vector<at::Tensor> values) {
  return c10::List<at::Tensor>(std::move(values));
}

c10::IValue options(const std::vector<at::Tensor>& values) {
  c10::List<std::optional<at::Tensor>> list;
  for (const at::Tensor& value : values) list.push_back(value);
  return list;
}

const c10::IValue kNone;

// References to elements stay valid.
class Examples {
 public:
  // Of one more example.
  std::function<Arguments()>& operator[](const std::string& name) {
    return all_.emplace_back(Example{name, {}}).make;
  }
  [[nodiscard]] std::vector<Example> all() const { return {all_.begin(), all_.end()}; }

 private:
  std::deque<Example> all_;
};

void add_indexed(Examples& of) {
  of["aten::embedding"] = [] { return Arguments{x({5, 3}), whole({0, 4, 2, 1})}; };
  of["aten::index_select"] = [] { return Arguments{x({4, 3}), 0, whole({3, 0})}; };
  of["aten::gather"] = [] { return Arguments{x({4, 3}), 1, whole({0, 2, 1, 1}, {4, 1}), false}; };
  const auto scattered = [] {
    return Arguments{x({4, 3}), 0, whole({0, 3, 2, 1, 1, 0}, {2, 3}), x({2, 3})};
  };
  of["aten::scatter.src"] = of["aten::scatter_add"] = scattered;
  for (const char* const reduce : {"sum", "prod", "amax", "mean"})
    of["aten::scatter_reduce.two"] = [scattered, reduce] {
      Arguments arguments = scattered();
      arguments.emplace_back(std::string(reduce));
      return arguments;
    };
  of["aten::scatter.reduce"] = [scattered] {
    Arguments arguments = scattered();
    arguments.emplace_back(std::string("multiply"));
    return arguments;
  };
  of["aten::scatter.value"] = [] { return Arguments{x({4, 3}), 1, whole({0, 2}, {1, 2}), 2.5}; };
  of["aten::scatter.value_reduce"] = [] {
    return Arguments{x({4, 3}), 1, whole({0, 2}, {1, 2}), 2.5, std::string("add")};
  };
  of["aten::index_add"] = [] { return Arguments{x({4, 3}), 0, whole({3, 0}), x({2, 3})}; };
  of["aten::index_reduce"] = [] {
    return Arguments{x({4, 3}), 0, whole({3, 0}), x({2, 3}), std::string("amax")};
  };
  of["aten::index_fill.int_Scalar"] = [] { return Arguments{x({4, 3}), 0, whole({3, 0}), 2}; };
  of["aten::index_fill.int_Tensor"] = [] {
    return Arguments{x({4, 3}), 0, whole({3, 0}), at::scalar_tensor(2)};
  };
  of["aten::index.Tensor"] = [] {
    return Arguments{x({4, 3}), options({whole({3, 0}), whole({2, 1})})};
  };
  of["aten::index_put"] = [] {
    return Arguments{x({4, 3}), options({whole({3, 0}), whole({2, 1})}), x({2}), true};
  };
  of["aten::take"] = [] { return Arguments{x({4, 3}), whole({11, 0, 5})}; };
  of["aten::take_along_dim"] = [] { return Arguments{x({4, 3}), whole({3, 0, 1}, {1, 3}), 0}; };
  of["aten::masked_scatter"] = [] {
    return Arguments{x({2, 2}), whole({1, 0, 1, 1}, {2, 2}).to(at::kBool), x({3})};
  };
  of["aten::masked_select"] = [] {
    return Arguments{x({2, 2}), whole({1, 0, 1, 1}, {2, 2}).to(at::kBool)};
  };
  of["aten::select_scatter"] = [] { return Arguments{x({4, 3}), x({3}), 0, 2}; };
  of["aten::slice_scatter"] = [] { return Arguments{x({4, 3}), x({2, 3}), 0, 1, 3, 1}; };
  of["aten::diagonal_scatter"] = [] { return Arguments{x({3, 3}), x({2}), 1, 0, 1}; };
  of["aten::bincount"] = [] { return Arguments{whole({3, 0, 1}), x({3}), 2}; };
  of["aten::one_hot"] = [] { return Arguments{whole({3, 0, 1}), 5}; };
  of["aten::searchsorted.Tensor"] = [] {
    return Arguments{x({4}), x({2}), false, false, kNone, whole({0, 1, 2, 3})};
  };
  of["aten::bucketize.Tensor"] = [] { return Arguments{x({4}), x({2}), false, true}; };
  of["aten::multinomial"] = [] { return Arguments{x({2, 4}), 2, false}; };
  of["aten::kthvalue"] = [] { return Arguments{x({4, 3}), 2, 0, true}; };
  of["aten::topk"] = [] { return Arguments{x({4, 3}), 2, 1, true, true}; };
  of["aten::unique_dim"] = [] { return Arguments{x({4, 3}), 0, true, true, true}; };
  of["aten::quantile"] = [] { return Arguments{x({4, 3}), x({2}).div(4), 0, true}; };
}

void add_losses(Examples& of) {
  for (const std::string name : {"nll_loss", "nll_loss_nd", "cross_entropy_loss"})
    of["aten::" + name] = [] { return Arguments{x({4, 3}), whole({0, 2, 1, 1}), x({3}), 1, 1}; };
  of["aten::nll_loss_nd"] = of["aten::cross_entropy_loss"] = [] {
    return Arguments{x({2, 3, 2, 2}), whole({0, 2, 1, 1, 0, 0, 2, 2}, {2, 2, 2}), x({3}), 0, 1};
  };
  of["aten::multi_margin_loss"] = [] {
    return Arguments{x({4, 3}), whole({0, 2, 1, 1}), 1, 1, x({3}), 1};
  };
  of["aten::multilabel_margin_loss"] = [] {
    return Arguments{x({2, 3}), whole({0, 2, -1, 1, -1, 0}, {2, 3}), 1};
  };
  of["aten::cdist"] = [] { return Arguments{x({2, 4, 3}), x({2, 5, 3}), 2.0, 1}; };
  of["aten::pdist"] = [] { return Arguments{x({4, 3}), 1.5}; };
}

void add_recurrent(Examples& of) {
  for (const auto& [name, gates] :
       std::map<std::string, int64_t>{{"gru_cell", 3}, {"rnn_tanh_cell", 1}, {"rnn_relu_cell", 1}})
    of["aten::" + name] = [gates = gates] {
      return Arguments{x({2, 3}),         x({2, 4}),      x({4 * gates, 3}),
                       x({4 * gates, 4}), x({4 * gates}), x({4 * gates})};
    };
  of["aten::lstm_cell"] = [] {
    return Arguments{x({2, 3}), tensors({x({2, 4}), x({2, 4})}), x({16, 3}), x({16, 4}), x({16}),
                     x({16})};
  };
}

// Two examples of four channels, five long in each of `rank` dimensions.
at::Tensor channels(int64_t rank) {
  Sizes sizes{2, 4};
  sizes.resize(static_cast<size_t>(rank) + 2, 5);
  return x(sizes);
}

at::Tensor kernel(int64_t rank, Sizes sizes) {
  sizes.resize(static_cast<size_t>(rank) + 2, 2);
  return x(sizes);
}

c10::IValue each(int64_t rank, int64_t value) {
  return all(Sizes(static_cast<size_t>(rank), value));
}

// Layers that exist for one, two and three dimensions.
void add_layers_of(int64_t rank, Examples& of) {
  const std::string d = std::to_string(rank) + "d";
  of["aten::conv" + d] = [rank] {
    return Arguments{channels(rank), kernel(rank, {4, 2}), x({4}), each(rank, 1),
                     each(rank, 1),  each(rank, 1),        2};
  };
  of["aten::conv_transpose" + d + (rank == 1 ? "" : ".input")] = [rank] {
    return Arguments{channels(rank), kernel(rank, {4, 3}), x({6}), each(rank, 2),
                     each(rank, 1),  each(rank, 1),        2,      each(rank, 1)};
  };
  of["aten::max_pool" + d] = [rank] {
    return Arguments{channels(rank), each(rank, 2), each(rank, 2),
                     each(rank, 1),  each(rank, 1), true};
  };
  of["aten::avg_pool" + d] = [rank] {
    return Arguments{channels(rank), each(rank, 2), each(rank, 2), each(rank, 1), true, false};
  };
  for (const std::string kind : {"avg", "max"})
    of["aten::adaptive_" + kind + "_pool" + d] = [rank] {
      return Arguments{channels(rank), each(rank, 3)};
    };
  for (const std::string kind : {"reflection", "replication"})
    of["aten::" + kind + "_pad" + d] = [rank] {
      return Arguments{channels(rank), each(2 * rank, 1)};
    };
  of["aten::upsample_nearest" + d + ".vec"] = [rank] {
    return Arguments{channels(rank), each(rank, 7), kNone};
  };
  const std::string linear = rank == 1 ? "linear" : rank == 2 ? "bilinear" : "trilinear";
  of["aten::upsample_" + linear + d + ".vec"] = [rank] {
    return Arguments{channels(rank), each(rank, 7), false, kNone};
  };
}

void add_layers(Examples& of) {
  const auto normed = [] {
    return Arguments{x({2, 4, 3}), x({4}), x({4}), x({4}), x({4}), true, 0.1, 1e-5, false};
  };
  of["aten::batch_norm"] = of["aten::instance_norm"] = normed;
  of["aten::batch_norm"] = [normed] {
    Arguments arguments = normed();
    arguments[5] = false;
    return arguments;
  };
  of["aten::group_norm"] = [] { return Arguments{x({2, 4, 3}), 2, x({4}), x({4}), 1e-5, false}; };
  of["aten::layer_norm"] = [] {
    return Arguments{x({2, 4, 3}), all({4, 3}), x({4, 3}), x({4, 3}), 1e-5, false};
  };
  of["aten::rms_norm"] = [] { return Arguments{x({2, 4, 3}), all({3}), x({3}), 1e-5}; };
  of["aten::prelu"] = [] { return Arguments{x({2, 4, 3}).neg(), x({4})}; };
  of["aten::glu"] = [] { return Arguments{x({2, 4}), 1}; };
  for (const int64_t rank : {1, 2, 3}) add_layers_of(rank, of);
  of["aten::upsample_bicubic2d.vec"] = [] {
    return Arguments{x({1, 2, 4, 4}), kNone, true, c10::List<double>({1.5, 2.0})};
  };
  of["aten::convolution"] = [] {
    return Arguments{x({2, 4, 5, 5}), x({4, 2, 2, 2}), x({4}),
                     all({1, 1}),     all({1, 1}),     all({1, 1}),
                     false,           all({0, 0}),     2};
  };
  of["aten::conv_tbc"] = [] { return Arguments{x({5, 2, 3}), x({2, 3, 4}), x({4}), 1}; };
  of["aten::constant_pad_nd"] = [] { return Arguments{x({2, 3, 4}), all({1, -1, 0, 2}), 0.5}; };
  of["aten::im2col"] = [] {
    return Arguments{x({1, 2, 4, 4}), all({2, 2}), all({1, 1}), all({1, 1}), all({2, 2})};
  };
  of["aten::col2im"] = [] {
    return Arguments{x({1, 8, 9}), all({4, 4}), all({2, 2}), all({1, 1}), all({1, 1}), all({2, 2})};
  };
  of["aten::affine_grid_generator"] = [] {
    return Arguments{x({1, 2, 3}), all({1, 1, 2, 2}), false};
  };
  of["aten::pixel_shuffle"] = [] { return Arguments{x({1, 8, 2, 2}), 2}; };
  of["aten::pixel_unshuffle"] = [] { return Arguments{x({1, 2, 4, 4}), 2}; };
  of["aten::channel_shuffle"] = [] { return Arguments{x({1, 4, 2, 2}), 2}; };
  of["aten::bilinear"] = [] { return Arguments{x({2, 3}), x({2, 4}), x({5, 3, 4}), x({5})}; };
}

void add_algebra(Examples& of) {
  of["aten::linalg_solve"] = [] { return Arguments{positive(3), x({3, 2})}; };
  of["aten::cholesky_solve"] = [] { return Arguments{x({3, 2}), at::eye(3), false}; };
  of["aten::cholesky_inverse"] = [] { return Arguments{at::eye(3), false}; };
  of["aten::linalg_lstsq"] = [] { return Arguments{positive(3), x({3, 2}), 0.1}; };
  of["aten::linalg_matrix_power"] = [] { return Arguments{positive(3), 3}; };
  of["aten::linalg_tensorinv"] = [] { return Arguments{at::eye(6).reshape({6, 2, 3}), 1}; };
  of["aten::linalg_tensorsolve"] = [] {
    return Arguments{at::eye(6).reshape({2, 3, 6}), x({2, 3}), kNone};
  };
  of["aten::linalg_matrix_norm"] = [] { return Arguments{x({3, 3}), 2, all({0, 1}), true}; };
  of["aten::linalg_vector_norm"] = [] { return Arguments{x({3, 3}), 2, all({0, 1}), true}; };
  of["aten::linalg_diagonal"] = [] { return Arguments{x({3, 3})}; };
  of["aten::tensordot"] = [] { return Arguments{x({2, 3}), x({3, 4}), all({1}), all({0})}; };
  of["aten::einsum"] = [] {
    return Arguments{std::string("ij,jk->ik"), tensors({x({2, 3}), x({3, 4})}), all({0, 1})};
  };
  of["aten::baddbmm"] = [] { return Arguments{x({2, 3, 5}), x({2, 3, 4}), x({2, 4, 5})}; };
  of["aten::addmm"] = [] { return Arguments{x({2, 4}), x({2, 3}), x({3, 4})}; };
  of["aten::addmv"] = [] { return Arguments{x({2}), x({2, 3}), x({3})}; };
  of["aten::addr"] = [] { return Arguments{x({2, 3}), x({2}), x({3})}; };
  of["aten::chain_matmul"] = of["aten::linalg_multi_dot"] = [] {
    return Arguments{tensors({x({2, 3}), x({3, 4}), x({4, 2})})};
  };
  of["aten::div.Tensor_mode"] = of["aten::divide.Tensor_mode"] = [] {
    return Arguments{x({2, 3}), x({3}), std::string("trunc")};
  };
  of["aten::div.Scalar_mode"] = [] {
    return Arguments{whole({-7, 0, 7}), 2, std::string("floor")};
  };
  of["aten::gcd"] = [] { return Arguments{whole({18, 12}), whole({7, 18})}; };
  of["aten::stft"] = [] { return Arguments{x({32}), 8, 4, 6, at::ones(6), false, true, true}; };
  of["aten::stft.center"] = [] {
    return Arguments{x({32}), 8,    4,   6, at::ones(6), true, std::string("reflect"),
                     false,   true, true};
  };
  of["aten::istft"] = [] {
    return Arguments{
        at::complex(x({5, 9}), x({5, 9})), 8, 4, 8, at::ones(8), true, false, true, kNone};
  };
  for (const std::string name : {"fft_fft2", "fft_ifftn", "fft_rfft2", "fft_irfftn"})
    of["aten::" + name] = [] { return Arguments{x({4, 4}), all({4, 3}), all({0, 1})}; };
}

void add_shapes(Examples& of) {
  of["aten::narrow"] = [] { return Arguments{x({4, 3}), 0, 1, 2}; };
  of["aten::select.int"] = [] { return Arguments{x({4, 3}), 0, 2}; };
  of["aten::slice.Tensor"] = [] { return Arguments{x({4, 3}), 0, 1, 3, 2}; };
  of["aten::unfold"] = [] { return Arguments{x({4, 3}), 0, 2, 1}; };
  of["aten::split_with_sizes"] = [] { return Arguments{x({4, 3}), all({1, 3}), 0}; };
  of["aten::tensor_split.indices"] = [] { return Arguments{x({4, 3}), all({1, 3}), 0}; };
  of["aten::unflatten.int"] = [] { return Arguments{x({4, 3}), 0, all({2, 2})}; };
  of["aten::roll"] = [] { return Arguments{x({4, 3}), all({1, 2}), all({0, 1})}; };
  of["aten::rot90"] = [] { return Arguments{x({4, 3}), 1, all({0, 1})}; };
  of["aten::permute"] = [] { return Arguments{x({4, 3}), all({1, 0})}; };
  of["aten::diag_embed"] = [] { return Arguments{x({4, 3}), 1, 0, 2}; };
  of["aten::diagonal"] = [] { return Arguments{x({4, 3}), 1, 0, 1}; };
  of["aten::pad_sequence"] = [] {
    return Arguments{tensors({x({2, 3}), x({4, 3})}), true, 0.5, std::string("right")};
  };
  of["aten::cat"] = of["aten::stack"] = [] {
    return Arguments{tensors({x({2, 3}), x({2, 3})}), 0};
  };
  of["aten::tril_indices"] = of["aten::triu_indices"] = [] { return Arguments{4, 3, 1}; };
  of["aten::repeat"] = of["aten::tile"] = [] { return Arguments{x({2, 3}), all({2, 2})}; };
  of["aten::view_as_complex"] = [] { return Arguments{x({3, 2})}; };
  of["aten::to_sparse_csr"] = [] { return Arguments{x({3, 2})}; };
  of["aten::to_dense"] = [] { return Arguments{x({3, 2}).to_sparse()}; };
  of["aten::vander"] = [] { return Arguments{x({3}), 4, true}; };
}

// ---- faults -------------------------------------------------------------------

at::Tensor resized(Draw& draw, const at::Tensor& tensor) {
  if (tensor.dim() == 0) return tensor.unsqueeze(0);
  const auto dimension = static_cast<int64_t>(draw.below(static_cast<uint64_t>(tensor.dim())));
  const int64_t size = tensor.size(dimension);
  switch (draw.below(6)) {
    case 0:
      return size > 0 ? tensor.narrow(dimension, 0, size - 1) : tensor;
    case 1:
      return at::cat({tensor, tensor}, dimension);
    case 2:
      return tensor.narrow(dimension, 0, 0);
    case 3:
      return tensor.unsqueeze(dimension);
    case 4:
      return size > 0 ? tensor.select(dimension, 0) : tensor;
    default:
      return tensor.transpose(dimension, 0);
  }
}

at::Tensor with_another_value(Draw& draw, const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.is_complex()) return tensor;
  at::Tensor changed = tensor.clone();
  const auto place = static_cast<int64_t>(draw.below(static_cast<uint64_t>(tensor.numel())));
  at::Tensor flat = changed.view({-1});
  if (tensor.is_floating_point())
    flat[place] = drawn_number(draw, kBadnessMax);
  else
    flat[place] = drawn_integer(draw, kBadnessMax);
  return changed;
}

// Not every type has every value.
at::Tensor spoiled(Draw& draw, const at::Tensor& tensor) try {
  static const std::vector<c10::ScalarType> types = {at::kFloat,    at::kDouble,      at::kLong,
                                                     at::kInt,      at::kBool,        at::kByte,
                                                     at::kBFloat16, at::kComplexFloat};
  if (!tensor.defined() || tensor.is_sparse()) return tensor;
  switch (draw.below(6)) {
    case 0:
      return tensor.to(types[draw.below(types.size())]);
    case 1:
    case 2:
      return resized(draw, tensor);
    default:
      return with_another_value(draw, tensor.contiguous());
  }
} catch (const std::exception&) {
  return tensor;
}

void spoil_list(Draw& draw, c10::List<c10::IValue> list);

void spoil(Draw& draw, c10::IValue& value) {
  if (value.isTensor()) value = spoiled(draw, value.toTensor());
  if (value.isInt()) value = drawn_integer(draw, draw.one_in(2) ? kBadnessMax : 0);
  if (value.isDouble()) value = drawn_number(draw, kBadnessMax);
  if (value.isBool()) value = !value.toBool();
  if (value.isString()) value = drawn_text(draw);
  if (value.isList()) spoil_list(draw, value.toList());
}

// Lists are shared by their copies: this one is the example's own.
void spoil_list(Draw& draw, c10::List<c10::IValue> list) {
  if (list.empty()) return;
  const size_t place = draw.below(list.size());
  if (draw.one_in(6)) return list.pop_back();
  if (draw.one_in(6)) return list.push_back(list.get(place));
  c10::IValue element = list.get(place);
  spoil(draw, element);
  list.set(place, element);
}

}  // namespace

std::vector<Example> operator_examples() {
  Examples of;
  add_indexed(of);
  add_losses(of);
  add_recurrent(of);
  add_layers(of);
  add_algebra(of);
  add_shapes(of);
  return of.all();
}

std::vector<c10::IValue> spoiled_arguments(const Example& example, uint64_t seed) {
  Draw draw(seed);
  std::vector<c10::IValue> arguments = example.make();
  const uint64_t faults = 1 + draw.below(3);
  for (uint64_t i = 0; i < faults; ++i) spoil(draw, arguments[draw.below(arguments.size())]);
  return arguments;
}

}  // namespace rehearsal
