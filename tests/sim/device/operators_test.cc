#include <torch/nn/functional.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/sim/device/devices.h"

// Goal: a program of LibTorch computes on a simulated device what it computes on the CPU, bit by
// bit, in whatever order the seed lets streams go on. A row for each way in which an operator
// reaches the device.
namespace rehearsal::sim {
namespace {

using torch::Tensor;
using Tensors = std::vector<Tensor>;
namespace F = torch::nn::functional;

Tensor numbers(torch::Device on, at::IntArrayRef sizes) {
  return (torch::arange(at::IntArrayRef(sizes).size() == 0 ? 1 : c10::multiply_integers(sizes),
                        torch::kFloat)
              .mul(0.37)
              .sin()
              .reshape(sizes))
      .to(on);
}

Tensor indices(torch::Device on) { return torch::tensor(std::vector<int64_t>{2, 0, 3, 2}).to(on); }

Tensors with_gradients(const Tensors& leaves, const std::function<Tensor(const Tensors&)>& loss) {
  Tensors inputs;
  for (const Tensor& leaf : leaves) inputs.push_back(leaf.detach().requires_grad_());
  const Tensor value = loss(inputs);
  value.backward();
  Tensors results{value.detach()};
  for (const Tensor& input : inputs) results.push_back(input.grad());
  return results;
}

struct Row {
  const char* name;
  std::function<Tensors(torch::Device)> compute;
  bool same_bits = true;  // not where LibTorch asks the CPU for another kernel than other devices
};

std::vector<Row> rows_of_elementary() {
  return {
      {"arithmetic, with numbers of the host",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 3}), b = numbers(on, {3});
         return Tensors{
             a + b, a * 2, 1 - a, a / b.abs().add(1), a.pow(2), -a, a.to(torch::kInt) * 2.5};
       }},
      {"in place",
       [](torch::Device on) {
         Tensor a = numbers(on, {4, 3});
         a.add_(1).mul_(a).clamp_(0, 1);
         a[1].zero_();
         a.select(1, 2).fill_(7);
         return Tensors{a};
       }},
      {"views",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6});
         return Tensors{a.t().contiguous(),
                        a.view({3, 8}),
                        a.reshape({2, 12}).t(),
                        a.slice(1, 1, 6, 2) + 1,
                        a.unfold(1, 2, 2),
                        a.expand({2, 4, 6}).sum(0),
                        a.flatten(),
                        a.diagonal(),
                        a.narrow(0, 1, 2).clone()};
       }},
      {"reductions",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6});
         const auto [values, places] = a.max(1);
         return Tensors{a.sum(), a.mean(0), values,      places,  a.argmax(),
                        a.std(), a.norm(),  a.cumsum(1), a.all(), a.logsumexp(1)};
       }},
      {"matrices",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6}), b = numbers(on, {6, 5}), c = numbers(on, {2, 4, 6});
         return Tensors{a.matmul(b), torch::addmm(numbers(on, {5}), a, b), c.matmul(b),
                        torch::bmm(c, c.transpose(1, 2)), torch::einsum("ij,kj->ik", {a, a})};
       }},
      {"joining and parting",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6});
         Tensors parts = a.split(2);
         const auto chunks = a.chunk(3, 1);
         return Tensors{torch::cat({a, a.neg()}), torch::stack(parts),
                        torch::stack(chunks),     torch::where(a > 0, a, a.neg()),
                        a.repeat({2, 1}),         a.roll(1),
                        torch::tril(a),           a.flip(0)};
       }},
  };
}

std::vector<Row> rows_of_indices_and_shapes() {
  return {
      {"indices",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6}), i = indices(on);
         Tensor b = a.clone();
         b.index_put_({i}, numbers(on, {6}));
         return Tensors{a.index({i}),
                        a.index_select(0, i),
                        a.gather(1, i.unsqueeze(1)),
                        b,
                        a.index({indices(torch::kCPU)}),
                        torch::zeros({4, 6}, on).scatter_add(0, i.unsqueeze(1), a),
                        a.masked_fill(a > 0, 3)};
       }},
      {"shapes that depend on values",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6});
         return Tensors{a.masked_select(a > 0), torch::nonzero(a > 0.5), a.index({a > 0}),
                        std::get<0>(torch::_unique2(indices(on)))};
       }},
      {"sorting",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 6});
         const auto [sorted, order] = a.sort(1);
         const auto [top, places] = a.topk(2);
         return Tensors{sorted, order, top, places, a.argsort(int64_t{0})};
       }},
      {"results that are given (out), and resized",
       [](torch::Device on) {
         Tensor out = torch::empty({0}, on);
         torch::add_out(out, numbers(on, {4, 3}), numbers(on, {3}));
         Tensor grown = numbers(on, {2, 3});
         grown.resize_({3, 3});
         grown[2].fill_(1);
         return Tensors{out, grown};
       }},
      {"types",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4});
         const Tensor c = torch::complex(a, a + 1);
         return Tensors{a.to(torch::kDouble) * 2, a.to(torch::kHalf),    a.to(torch::kBFloat16) + 1,
                        (c * c.conj()).abs(),     torch::real(c.conj()), torch::imag(c.conj())};
       }},
  };
}

std::vector<Row> rows_of_layers() {
  return {
      {"normalisation and loss",
       [](torch::Device on) {
         return with_gradients(
             {numbers(on, {4, 6}), numbers(on, {6}), numbers(on, {6})}, [&](const Tensors& in) {
               const Tensor y = torch::layer_norm(in[0], {6}, in[1], in[2]);
               const Tensor z = torch::batch_norm(y, in[1], in[2], {}, {}, true, 0.1, 1e-5, false);
               return torch::cross_entropy_loss(z, indices(on));
             });
       }},
      {"activations",
       [](torch::Device on) {
         return with_gradients({numbers(on, {4, 6})}, [](const Tensors& in) {
           return torch::relu(in[0])
               .add(torch::gelu(in[0]))
               .add(torch::sigmoid(in[0]))
               .add(torch::log_softmax(in[0], 1))
               .add(torch::silu(in[0]))
               .tanh()
               .sum();
         });
       }},
      {"convolutions",
       [](torch::Device on) {
         return with_gradients(
             {numbers(on, {2, 3, 8, 8}), numbers(on, {4, 3, 3, 3}), numbers(on, {4}),
              numbers(on, {4, 2, 3, 3})},
             [](const Tensors& in) {
               const Tensor y = torch::conv2d(in[0], in[1], in[2], 2, 1);
               const Tensor z = torch::conv_transpose2d(y.relu(), in[3], {}, 2, 1, 1);
               return torch::max_pool2d(z, 2).pow(2).mean() + torch::avg_pool2d(z, 2).sum();
             });
       }},
      {"embeddings",
       [](torch::Device on) {
         return with_gradients({numbers(on, {5, 3})}, [&](const Tensors& in) {
           return torch::embedding(in[0], indices(on)).pow(2).sum() +
                  in[0].index({indices(on)}).sum();
         });
       }},
      {"recurrent layers",
       [](torch::Device on) {
         torch::manual_seed(3);
         torch::nn::LSTM lstm(torch::nn::LSTMOptions(4, 5).num_layers(2));
         torch::nn::GRU gru(5, 3);
         lstm->to(on);
         gru->to(on);
         const auto [output, state] = lstm->forward(numbers(on, {3, 2, 4}));
         const auto [last, hidden] = gru->forward(output);
         last.pow(2).sum().backward();
         Tensors results{output.detach(), last.detach(), std::get<0>(state).detach()};
         for (const Tensor& parameter : lstm->parameters()) results.push_back(parameter.grad());
         for (const Tensor& parameter : gru->parameters()) results.push_back(parameter.grad());
         return results;
       },
       /*same_bits=*/false},
      {"attention",
       [](torch::Device on) {
         return with_gradients(
             {numbers(on, {2, 2, 4, 8}), numbers(on, {2, 2, 4, 8})}, [](const Tensors& in) {
               return std::get<0>(torch::_scaled_dot_product_attention_math(in[0], in[1], in[0]))
                   .sum();
             });
       }},
  };
}

std::vector<Row> rows_of_all_others() {
  return {
      {"gradients of gradients",
       [](torch::Device on) {
         const Tensor x = numbers(on, {4}).requires_grad_();
         const Tensor first = torch::autograd::grad({x.pow(3).sum()}, {x}, {}, true, true)[0];
         return Tensors{torch::autograd::grad({first.sum()}, {x})[0]};
       }},
      {"lists of tensors at once",
       [](torch::Device on) {
         Tensors a{numbers(on, {3}), numbers(on, {4})};
         torch::_foreach_mul_(a, 2);
         Tensors b = torch::_foreach_add(a, 1);
         return Tensors{a[0], a[1], b[0], b[1]};
       }},
      {"empty tensors",
       [](torch::Device on) {
         const Tensor none = torch::empty({0, 3}, on);
         return Tensors{none + 1, torch::cat({none, numbers(on, {2, 3})}), none.sum()};
       }},
      {"linear algebra",
       [](torch::Device on) {
         const Tensor a = numbers(on, {4, 4}) + torch::eye(4, on) * 3;
         return Tensors{torch::linalg_inv(a), torch::linalg_det(a),
                        torch::linalg_solve(a, numbers(on, {4, 2}))};
       }},
  };
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all = [] {
    std::vector<Row> joined;
    for (const auto& part : {rows_of_elementary(), rows_of_indices_and_shapes(), rows_of_layers(),
                             rows_of_all_others()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return all;
}

class Operators : public testing::TestWithParam<size_t> {};

TEST_P(Operators, HaveTheBitsOfTheCpu) {
  const Row& row = rows()[GetParam()];
  const Tensors expected = row.compute(torch::kCPU);
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SimulatedDevices devices({.seed = seed});
    const Tensors results = row.compute(sim_device());
    EXPECT_EQ(problems_of(devices), "") << row.name;
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].device(), sim_device()) << row.name << ", result " << i;
      const Tensor got = results[i].cpu();
      EXPECT_TRUE(row.same_bits ? torch::equal(got, expected[i])
                                : torch::allclose(got, expected[i], 1e-5, 1e-6))
          << row.name << ", result " << i << ", seed " << seed << ":\n"
          << got << "\n"
          << expected[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Operators, testing::Range(size_t{0}, rows().size()),
                         [](const auto& info) {
                           std::string name;
                           for (const char c : std::string(rows()[info.param].name))
                             name += isalnum(c) != 0 ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace rehearsal::sim
