// Goal: each operation of a process group gives what a serial computation gives, for every number
// of members, type and form, and the same bits whatever the schedule. Method: simulated workers
// under mild and hostile faults, with many seeds.
#include <ATen/core/Dimname.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/collectives/group_program.h"
#include "tests/effort.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::FaultLevel;
using Tensors = std::vector<at::Tensor>;

// The draws of one operation: the same at all members.
struct Drawn {
  uint64_t seed;
  std::vector<int64_t> sizes;
  at::ScalarType type;
  uint32_t root;
  bool transposed;

  [[nodiscard]] at::Tensor of(uint32_t rank, uint64_t more = 0) const {
    const at::Tensor numbers = whole_numbers(sizes, type, mix(seed, rank * 31 + more));
    return transposed ? numbers.t().contiguous().t() : numbers;
  }
  [[nodiscard]] at::Tensor empty() const { return at::zeros(sizes, type); }
};

Drawn draw(uint64_t seed, uint32_t members) {
  const std::vector<std::vector<int64_t>> shapes = {{},     {0},       {1},        {3, 4},
                                                    {2, 0}, {5, 1, 2}, {128, 161}, {40, 1024}};
  const std::vector<at::ScalarType> types = {
      at::kFloat, at::kDouble, at::kHalf,         at::kLong,  at::kBFloat16,
      at::kInt,   at::kBool,   at::kComplexFloat, at::kShort, at::kByte};
  Drawn drawn{.seed = seed,
              .sizes = shapes[mix(seed, 1) % shapes.size()],
              .type = types[mix(seed, 2) % types.size()],
              .root = static_cast<uint32_t>(mix(seed, 3) % members),
              .transposed = false};
  drawn.transposed = drawn.sizes.size() == 2 && mix(seed, 4) % 2 == 0;
  return drawn;
}

std::vector<ReduceOp> reductions_of(at::ScalarType type) {
  std::vector<ReduceOp> ops = {ReduceOp::sum, ReduceOp::product};
  if (!at::isComplexType(type)) ops.insert(ops.end(), {ReduceOp::min, ReduceOp::max});
  if (at::isFloatingType(type)) ops.push_back(ReduceOp::average);
  return ops;
}

at::Tensor combined_serially(const Tensors& all, ReduceOp op) {
  at::Tensor sum = all.front();
  for (size_t i = 1; i < all.size(); ++i) {
    if (op == ReduceOp::product) sum = sum * all[i];
    if (op == ReduceOp::min) sum = at::minimum(sum, all[i]);
    if (op == ReduceOp::max) sum = at::maximum(sum, all[i]);
    if (op == ReduceOp::sum || op == ReduceOp::average) sum = sum + all[i];
  }
  return op == ReduceOp::average ? sum / static_cast<int64_t>(all.size()) : sum;
}

// The sign of a complex zero depends on the order of its factors.
bool same_values(const at::Tensor& first, const at::Tensor& second) {
  return first.dtype() == second.dtype() && first.sizes() == second.sizes() &&
         at::equal(first, second);
}

// The tensors of all members for one operation.
Tensors of_all(const Drawn& drawn, uint32_t members, uint64_t more = 0) {
  Tensors all;
  for (uint32_t rank = 0; rank < members; ++rank) all.push_back(drawn.of(rank, more));
  return all;
}

void reduce_all_ways(const ProcessGroup& group, const Drawn& drawn) {
  const Tensors all = of_all(drawn, group.size());
  for (const ReduceOp op : reductions_of(drawn.type)) {
    const at::Tensor expected = combined_serially(all, op);
    const at::Tensor everywhere = drawn.of(group.rank());
    group.all_reduce(everywhere, op);
    EXPECT_TRUE(same_values(everywhere, expected)) << static_cast<int>(op);
    const at::Tensor at_root = drawn.of(group.rank());
    group.reduce(at_root, drawn.root, op);
    EXPECT_TRUE(same_values(at_root, group.rank() == drawn.root ? expected : all[group.rank()]));
    Tensors inputs;
    for (uint32_t rank = 0; rank < group.size(); ++rank)
      inputs.push_back(drawn.of(group.rank(), 1 + rank));
    const at::Tensor mine = drawn.empty();
    group.reduce_scatter(mine, inputs, op);
    EXPECT_TRUE(
        same_values(mine, combined_serially(of_all(drawn, group.size(), 1 + group.rank()), op)));
  }
}

void move_all_ways(const ProcessGroup& group, const Drawn& drawn) {
  const uint32_t rank = group.rank();
  const Tensors all = of_all(drawn, group.size());
  const at::Tensor given = drawn.of(rank);
  group.broadcast(given, drawn.root);
  EXPECT_TRUE(equal_bits(given, all[drawn.root]));

  Tensors gathered;
  for (uint32_t i = 0; i < group.size(); ++i) gathered.push_back(drawn.empty());
  group.all_gather(gathered, drawn.of(rank));
  for (uint32_t i = 0; i < group.size(); ++i) EXPECT_TRUE(equal_bits(gathered[i], all[i]));

  const bool is_root = rank == drawn.root;
  Tensors at_root;
  for (uint32_t i = 0; is_root && i < group.size(); ++i) at_root.push_back(drawn.empty());
  group.gather(at_root, drawn.of(rank), drawn.root);
  for (uint32_t i = 0; i < at_root.size(); ++i) EXPECT_TRUE(equal_bits(at_root[i], all[i]));

  const at::Tensor scattered = drawn.empty();
  group.scatter(scattered, is_root ? all : Tensors(), drawn.root);
  EXPECT_TRUE(equal_bits(scattered, all[rank]));

  // Each pair has a form of its own.
  const auto between = [&](uint32_t from, uint32_t to) {
    return whole_numbers({from + 1, to}, drawn.type, mix(drawn.seed, from * 8 + to));
  };
  Tensors outputs;
  Tensors inputs;
  for (uint32_t i = 0; i < group.size(); ++i) {
    outputs.push_back(at::zeros({i + 1, rank}, drawn.type));
    inputs.push_back(between(rank, i));
  }
  group.all_to_all(outputs, inputs);
  for (uint32_t i = 0; i < group.size(); ++i) EXPECT_TRUE(equal_bits(outputs[i], between(i, rank)));
}

void pass_messages(const ProcessGroup& group, const Drawn& drawn) {
  if (group.size() == 1) return;
  const uint32_t right = (group.rank() + 1) % group.size();
  const uint32_t left = (group.rank() + group.size() - 1) % group.size();
  // Two tags, which do not wait for each other, and two messages of one tag, in their order.
  const auto first = group.send_async(drawn.of(group.rank(), 1), right, 3);
  const auto second = group.send_async(drawn.of(group.rank(), 2), right, 4);
  const auto third = group.send_async(drawn.of(group.rank(), 3), right, 3);
  const Tensors got = {drawn.empty(), drawn.empty(), drawn.empty()};
  group.recv(got[1], left, 4);
  group.recv(got[0], left, 3);
  group.recv(got[2], left, 3);
  for (const auto& sent : {first, second, third}) sent.wait();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(equal_bits(got[i], drawn.of(left, 1 + i)));
}

TEST(Collectives, GiveWhatASerialComputationGives) {
  for (uint32_t count = 1; count <= 5; ++count)
    for (const FaultLevel faults : {FaultLevel::mild, FaultLevel::hostile})
      EXPECT_TRUE(sim::hunt({.seeds = tries(4), .cluster = {.faults = faults}},
                            [&](Seed seed, const ClusterOptions& options) {
                              const Program program = members(count, [&](Worker& worker) {
                                const ProcessGroup group(worker);
                                EXPECT_EQ(group.size(), count);
                                for (uint64_t i = 0; i < 2; ++i) {
                                  const Drawn drawn = draw(mix(seed.value, i), count);
                                  reduce_all_ways(group, drawn);
                                  move_all_ways(group, drawn);
                                  pass_messages(group, drawn);
                                }
                                group.barrier();
                              });
                              Cluster(seed, program, options).run();
                            }));
}

TEST(Collectives, GiveTheSameBitsWhateverTheSchedule) {
  // Goal: sums are added in an order that the members alone decide. Method: numbers whose sum
  // depends on it, small and large ones, and orders of messages from many seeds.
  std::map<int64_t, at::Tensor> sums;
  EXPECT_TRUE(sim::hunt({.seeds = tries(25)}, [&](Seed seed, const ClusterOptions& options) {
    const Program program = members(4, [&](Worker& worker) {
      const ProcessGroup group(worker);
      for (const int64_t size : {100, 100'000}) {
        const at::Tensor sum = rough_numbers({size}, 17 + group.rank());
        group.all_reduce(sum);
        const auto [known, fresh] = sums.emplace(size, sum);
        EXPECT_TRUE(equal_bits(sum, known->second)) << size;
      }
    });
    Cluster(seed, program, options).run();
  }));
  // The order matters for these numbers: the test could fail.
  at::Tensor forward = at::zeros({100'000});
  at::Tensor backward = at::zeros({100'000});
  for (uint64_t rank = 0; rank < 4; ++rank) {
    forward += rough_numbers({100'000}, 17 + rank);
    backward += rough_numbers({100'000}, 20 - rank);
  }
  EXPECT_FALSE(equal_bits(forward, backward));
  EXPECT_TRUE(at::allclose(sums.at(100'000), forward, 1e-5, 1e-5));
}

TEST(Collectives, OfTwoGroupsAndManyOperationsAtOnceDoNotMeet) {
  // Goal: groups that share members, and asynchronous operations of one group, stay apart. Method:
  // all are begun before any is waited for, in another order in each group.
  EXPECT_TRUE(sim::hunt({.seeds = tries(15)}, [](Seed seed, const ClusterOptions& options) {
    const Program program = members(4, [](Worker& worker) {
      const ProcessGroup all(worker);
      const bool is_low = worker.id().value < 2;
      const ProcessGroup half(worker, is_low ? std::vector<std::string>{"member1", "member0"}
                                             : std::vector<std::string>{"member2", "member3"});
      EXPECT_EQ(half.names()[half.rank()], worker.name());
      Tensors sums;
      std::vector<Future<Unit>> done;
      for (int64_t i = 0; i < 4; ++i) {
        sums.push_back(at::full({3}, worker.id().value + i));
        done.push_back(all.all_reduce_async(sums.back()));
        sums.push_back(at::full({3}, worker.id().value + i));
        done.push_back(half.all_reduce_async(sums.back(), ReduceOp::max));
      }
      done.push_back(half.barrier_async());
      for (const auto& one : done) one.wait();
      for (int64_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(at::equal(sums[2 * i], at::full({3}, 6 + 4 * i)));
        EXPECT_TRUE(at::equal(sums[2 * i + 1], at::full({3}, (is_low ? 1 : 3) + i)));
      }
    });
    Cluster(seed, program, options).run();
  }));
}

TEST(Collectives, LeaveEachMembersNamesOfDimensionsAsTheyAre) {
  // Goal: elements travel, names stay with the tensor that has them. Method: one member's tensors
  // have names; operations of both directions, with values that were never sent before.
  const auto named = [](const at::Tensor& tensor) {
    const at::Dimname rows = at::Dimname::fromSymbol(at::Symbol::dimname("rows"));
    return tensor.refine_names({rows, at::Dimname::wildcard()});
  };
  const Program program = members(2, [&named](Worker& worker) {
    const ProcessGroup group(worker);
    const bool has_names = group.rank() == 0;
    const auto mine = [&](const at::Tensor& tensor) { return has_names ? named(tensor) : tensor; };
    const auto expect = [&](const at::Tensor& tensor, double each) {
      EXPECT_EQ(tensor.has_names(), has_names);
      EXPECT_TRUE(at::equal(tensor.rename(std::nullopt), at::full({2, 3}, each)));
    };
    const at::Tensor sum = mine(at::full({2, 3}, 1.0 + group.rank()));
    group.all_reduce(sum);
    expect(sum, 3);
    for (const uint32_t root : {0, 1}) {
      const at::Tensor given = mine(at::full({2, 3}, 10.0 + group.rank()));
      group.broadcast(given, root);
      expect(given, 10.0 + root);
    }
    const at::Tensor letter = mine(at::full({2, 3}, 5.0));
    if (has_names)
      group.send(letter, 1);
    else
      group.recv(letter.zero_(), 0);
    expect(letter, 5);
  });
  Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run();
}

TEST(Collectives, OfASmallTensorTakeFewMessages) {
  // Goal: 2 (n − 1) parcels for an operation of n members, and two round trips more than the height
  // of the tree each way. Method: the calls that are served, of ten operations more.
  const auto calls_of = [](int rounds) {
    const Program program = members(8, [rounds](Worker& worker) {
      const ProcessGroup group(worker);
      for (int i = 0; i < rounds; ++i) group.all_reduce(at::ones({4}));
    });
    return Cluster(Seed{1}, program, {.faults = FaultLevel::none}).run().calls;
  };
  EXPECT_EQ(calls_of(11) - calls_of(1), 10 * 2 * (8 - 1));
}

}  // namespace
}  // namespace rehearsal::testing
