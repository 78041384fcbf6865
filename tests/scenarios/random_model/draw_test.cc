#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "scenarios/random_model/model.h"
#include "scenarios/random_model/sums.h"

namespace rehearsal::random_model {
namespace {

constexpr Size kSize{.workers = 4, .nodes = 10, .passes = 3};

// How often the other nodes use this output of this one.
size_t uses_of(const Model& model, size_t node, size_t output) {
  size_t uses = 0;
  for (const Node& user : model.nodes)
    for (const Input& input : user.inputs)
      if (input.node == node && input.output == output) ++uses;
  return uses;
}

TEST(DrawnModels, HaveEveryOperatorTypeAndWayAmongThem) {
  // Goal: what the scenario claims to cover comes up. Method: count in 2,000 models.
  std::map<Operator, int> operators;
  std::set<at::ScalarType> types;
  std::map<Way, int> ways;
  std::map<Start, int> starts;
  std::set<std::string> kinds;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Model model = draw_model(Seed{seed}, kSize);
    for (const Node& node : model.nodes) {
      ++operators[node.op];
      ++ways[node.way];
      types.insert(node.type);
      if (node.via.size() == 2 && node.via[0] == node.worker) kinds.insert("A, B, A");
      if (!node.via.empty() && node.via[0] == 0) kinds.insert("a call to oneself");
      for (const Input& input : node.inputs)
        kinds.insert(std::string(input.by_reference ? "reference" : "value") +
                     (input.apart ? ", apart" : ""));
    }
    for (const Pass& pass : model.passes) {
      ++starts[pass.start];
      kinds.insert(pass.retain_graph ? "retained" : "released");
      if (pass.create_graph) kinds.insert("recorded");
      if (pass.losses.empty()) kinds.insert("penalty");
      if (pass.losses.size() > 1) kinds.insert("several losses");
      if (pass.hasty) kinds.insert("hasty");
    }
    if (model.hub && uses_of(model, *model.hub, 0) == 3) kinds.insert("three contributions");
    if (model.fast) kinds.insert("fast");
    if (model.hurries) kinds.insert("hurries");
  }
  EXPECT_EQ(operators.size(), static_cast<size_t>(Operator::loss) + 1);
  for (const auto& [op, count] : operators) EXPECT_GT(count, 20) << name_of(op);
  EXPECT_EQ(types, (std::set<at::ScalarType>{at::kHalf, at::kBFloat16, at::kFloat, at::kDouble,
                                             at::kComplexFloat, at::kComplexDouble}));
  EXPECT_EQ(ways.size(), 4u);
  EXPECT_EQ(starts.size(), 4u);
  EXPECT_EQ(kinds, (std::set<std::string>{"A, B, A", "a call to oneself", "reference",
                                          "reference, apart", "value", "value, apart", "retained",
                                          "released", "recorded", "penalty", "several losses",
                                          "hasty", "three contributions", "fast", "hurries"}));
}

TEST(DrawnModels, RoundNoSumThatHasTwoOrders) {
  // Goal: what is compared bit for bit does not depend on the order of additions. Method: the uses
  // of every output of 20,000 models.
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    const Model model = draw_model(Seed{seed}, kSize);
    if (model.exact) continue;
    for (size_t i = 0; i < model.nodes.size(); ++i) {
      if (is_leaf(model.nodes[i])) continue;
      for (const size_t output : {0, 1})
        EXPECT_LE(uses_of(model, i, output), model.hub == i && output == 0 ? 3u : 2u)
            << seed << ": " << text_of(model, i);
    }
  }
}

TEST(DrawnModels, UseEverythingWhereTheirPassesAreFast) {
  // Goal: mode FAST gets what it takes for granted. Method: 2,000 models.
  size_t fast = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Model model = draw_model(Seed{seed}, kSize);
    if (!model.fast) continue;
    ++fast;
    EXPECT_EQ(model.passes.size(), 1u);
    for (size_t i = 0; i + 1 < model.nodes.size(); ++i)
      if (!is_leaf(model.nodes[i])) {
        EXPECT_GT(uses_of(model, i, 0) + uses_of(model, i, 1), 0u)
            << seed << ": " << text_of(model, i);
      }
  }
  EXPECT_GT(fast, 100u);
}

TEST(DrawnModels, KeepTheirNodesWhenThereAreMore) {
  // Goal: a failure stays while it is made small. Method: the same seed with more nodes.
  const Model small = draw_model(Seed{7}, {.workers = 3, .nodes = 4, .passes = 2});
  const Model large = draw_model(Seed{7}, {.workers = 3, .nodes = 9, .passes = 2});
  for (size_t i = 0; small.nodes[i].op != Operator::loss; ++i) {
    EXPECT_EQ(text_of(small, i), text_of(large, i));
    EXPECT_TRUE(same_bits(small.nodes[i].content, large.nodes[i].content)) << i;
    ASSERT_EQ(small.nodes[i].inputs.size(), large.nodes[i].inputs.size());
    for (size_t j = 0; j < small.nodes[i].inputs.size(); ++j)
      EXPECT_EQ(small.nodes[i].inputs[j].node, large.nodes[i].inputs[j].node);
  }
}

}  // namespace
}  // namespace rehearsal::random_model
