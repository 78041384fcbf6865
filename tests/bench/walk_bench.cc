// A backward walk beside its floor, LibTorch's engine on the same graph: ten shapes of graph, each
// made once and walked again and again.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <utility>
#include <vector>

#include "core/autograd/graph_walk.h"
#include "core/base/check.h"

namespace rehearsal {
namespace {

// A graph: its root, a number, and its leaves.
struct Graph {
  at::Tensor root;
  std::vector<at::Tensor> leaves;
};

at::Tensor leaf(std::initializer_list<int64_t> sizes) {
  return at::ones(sizes).mul_(0.5).requires_grad_();
}

Graph chain(int64_t length) {
  const at::Tensor x = leaf({16});
  at::Tensor value = x;
  for (int64_t i = 0; i < length; ++i) value = value * 1.0;
  return {value.sum(), {x}};
}

// One leaf, used many times.
Graph fan(int64_t uses) {
  const at::Tensor x = leaf({16});
  std::vector<at::Tensor> used;
  for (int64_t i = 0; i < uses; ++i) used.push_back(x * 2.0);
  return {at::stack(used).sum(), {x}};
}

Graph many_leaves(int64_t count) {
  std::vector<at::Tensor> leaves;
  at::Tensor sum = at::zeros({16});
  for (int64_t i = 0; i < count; ++i) {
    leaves.push_back(leaf({16}));
    sum = sum + leaves.back();
  }
  return {sum.sum(), leaves};
}

// Each layer uses both results of the one before, twice.
Graph lattice(int64_t layers) {
  const at::Tensor x = leaf({16});
  at::Tensor left = x * 1.0;
  at::Tensor right = x * 1.0;
  for (int64_t i = 0; i < layers; ++i) {
    const at::Tensor sum = left + right;
    right = left - right;
    left = sum;
  }
  return {(left + right).sum(), {x}};
}

Graph tree(int64_t depth) {
  std::vector<at::Tensor> level;
  for (int64_t i = 0; i < (int64_t{1} << depth); ++i) level.push_back(leaf({16}));
  const std::vector<at::Tensor> leaves = level;
  while (level.size() > 1) {
    std::vector<at::Tensor> next;
    for (size_t i = 0; i < level.size(); i += 2) next.push_back(level[i] * level[i + 1]);
    level = std::move(next);
  }
  return {level.front().sum(), leaves};
}

// A node with many results.
Graph split(int64_t parts) {
  const at::Tensor x = leaf({parts, 16});
  at::Tensor sum = at::zeros({16});
  for (const at::Tensor& part : (x * 1.0).unbind()) sum = sum + part;
  return {sum.sum(), {x}};
}

Graph layers(int64_t count, int64_t width) {
  std::vector<at::Tensor> leaves;
  at::Tensor value = at::ones({32, width});
  for (int64_t i = 0; i < count; ++i) {
    leaves.push_back(leaf({width, width}));
    leaves.push_back(leaf({width}));
    value = at::tanh(at::addmm(leaves.back(), value, leaves[leaves.size() - 2]));
  }
  return {value.sum(), leaves};
}

// An embedding with a sparse gradient, beside a dense use of the same table.
Graph lookup(int64_t rows) {
  const at::Tensor table = leaf({1000, 16});
  const at::Tensor found = at::embedding(table, at::arange(rows), -1, false, /*sparse=*/true);
  return {found.sum() + (table * 2.0).sum(), {table}};
}

using MakeGraph = std::function<Graph()>;

struct IdleHost final : WalkHost {
  void on_received_gradients(RecvRpcBackward& /*function*/,
                             torch::autograd::variable_list /*gradients*/,
                             std::vector<uint32_t> /*unreached*/) override {}
  void enter(torch::autograd::Node& /*node*/) override {}
  void leave(torch::autograd::Node& /*node*/) noexcept override {}
  void on_gate(uint32_t /*number*/, PassGate& /*gate*/, GatePart /*part*/) override {}
};

void walk_by_engine(benchmark::State& state, const MakeGraph& make) {
  const Graph graph = make();
  for (auto _ : state) {
    auto gradients = torch::autograd::grad({graph.root}, graph.leaves, {}, /*retain_graph=*/true);
    benchmark::DoNotOptimize(gradients);
  }
}

void walk_by_ours(benchmark::State& state, const MakeGraph& make) {
  const Graph graph = make();
  for (auto _ : state) {
    IdleHost host;
    WalkScope scope;
    scope.roots = {{torch::autograd::impl::gradient_edge(graph.root), at::ones_like(graph.root)}};
    scope.retain_graph = true;
    GraphWalk walk(std::move(scope), host);
    walk.run();
    REHEARSAL_CHECK(walk.finished());
    LeafGradients gradients;
    for (auto& [place, gradient] : walk.take_gradients()) gradients.accumulate(std::move(gradient));
    benchmark::DoNotOptimize(gradients);
  }
}

const int kRegistered = [] {
  const std::vector<std::pair<const char*, MakeGraph>> shapes = {
      {"one_node", [] { return chain(1); }},
      {"chain_of_100", [] { return chain(100); }},
      {"chain_of_10000", [] { return chain(10'000); }},
      {"fan_of_1000", [] { return fan(1'000); }},
      {"1000_leaves", [] { return many_leaves(1'000); }},
      {"lattice_of_100", [] { return lattice(100); }},
      {"tree_of_1024", [] { return tree(10); }},
      {"split_in_256", [] { return split(256); }},
      {"8_layers_of_256", [] { return layers(8, 256); }},
      {"sparse_lookup", [] { return lookup(64); }}};
  for (const auto& [name, make] : shapes) {
    benchmark::RegisterBenchmark((std::string("walk_floor_engine/") + name).c_str(), walk_by_engine,
                                 make);
    benchmark::RegisterBenchmark((std::string("walk/") + name).c_str(), walk_by_ours, make);
  }
  return 0;
}();

}  // namespace
}  // namespace rehearsal
