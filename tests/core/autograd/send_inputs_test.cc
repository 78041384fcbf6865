// Goal: a send function takes the gradients of its message's tensors and no others. Method: one of
// two tensors in a walk, with gradients that fit and that do not.
#include <gtest/gtest.h>

#include "tests/core/autograd/walk_support.h"

namespace rehearsal::testing {
namespace {

struct SentPair {
  at::Tensor a = leaf({1, 1});
  at::Tensor b = leaf({2, 2});
  std::shared_ptr<SendRpcBackward> send = SendRpcBackward::make(route(1), {a, b});
  RecordingHost host;

  LeafGradients gradients_of(torch::autograd::variable_list inputs) {
    WalkScope scope;
    scope.sends = {send};
    scope.retain_graph = true;
    GraphWalk walk(std::move(scope), host);
    walk.deliver(*send, std::move(inputs));
    walk.run();
    EXPECT_TRUE(walk.finished());
    LeafGradients gradients;
    for (auto& [place, gradient] : walk.take_gradients()) gradients.accumulate(std::move(gradient));
    return gradients;
  }
};

// Rows: cpp/test_dist_autograd::DistAutogradTest.TestSendFunctionInvalidInputs
TEST(SendRpcBackwardInputs, ThatDoNotFitItsTensorsAreRefused) {
  SentPair pair;
  // Called with inputs of its own, as no walk does: it has none.
  EXPECT_EQ(pair.send->num_inputs(), 0u);
  EXPECT_EQ(pair.send->num_outputs(), 2u);
  // Of another size, and fewer than it has tensors.
  EXPECT_THROW((void)pair.gradients_of({at::ones({2}), at::ones({3})}), c10::Error);
  EXPECT_THROW((void)pair.gradients_of({at::ones({2, 3}), at::ones({2})}), c10::Error);
  EXPECT_THROW((void)pair.gradients_of({at::ones({2})}), c10::Error);
  // An undefined one is that of a tensor that got none, as in LibTorch's own passes.
  const LeafGradients one = pair.gradients_of({at::Tensor(), at::full({2}, 3.F)});
  EXPECT_EQ(one.all().size(), 1u);
  EXPECT_TRUE(one.find(pair.b).equal(at::full({2}, 3.F)));
  const LeafGradients both = pair.gradients_of({at::ones({2}), at::full({2}, 3.F)});
  EXPECT_TRUE(both.find(pair.a).equal(at::ones({2})));
  EXPECT_TRUE(both.find(pair.b).equal(at::full({2}, 3.F)));
}

}  // namespace
}  // namespace rehearsal::testing
