// Gradients of what streams carry, over simulated workers.
#include <gtest/gtest.h>

#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

// A parameter whose multiples are streamed.
class Source {
 public:
  Source() : weight_(numbers({3}, 5).requires_grad_()) {}
  void multiples(StreamWriter<at::Tensor>& out, const at::Tensor& x, int64_t count) {
    for (int64_t factor = 1; factor <= count; ++factor) out.write(weight_ * x * factor);
  }
  at::Tensor gradient(CallContext& call) { return get_gradients(call).find(weight_); }

 private:
  at::Tensor weight_;
};

FunctionRegistry source_functions() {
  FunctionRegistry registry;
  registry.type<Source>("Source")
      .constructor<>()
      .method("multiples", &Source::multiples)
      .method("gradient", &Source::gradient);
  return registry;
}

TEST(StreamGradients, FlowThroughEveryValueThatWasRead) {
  // Goal: values are recorded as results are. Method: the sum of 20 multiples of a remote weight
  // and a local input; their gradients are 210 times the other factor, exactly.
  Program program(source_functions());
  program.worker("server", [](Worker&) {});
  program.worker("trainer", [](Worker& worker) {
    const auto source = worker.remote<Source>("server");
    const at::Tensor x = numbers({3}, 9).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    at::Tensor sum = at::zeros({});
    for (const at::Tensor& value :
         context.with_credit(3).rpc_stream(source, &Source::multiples, x, int64_t{20}))
      sum = sum + value.sum();
    context.backward({sum});
    const at::Tensor remote = context.rpc_sync(source, &Source::gradient);
    EXPECT_TRUE(at::allclose(remote, x.detach() * 210));
    EXPECT_TRUE(at::allclose(context.get_gradients().find(x), numbers({3}, 5) * 210));
  });
  EXPECT_TRUE(sim::holds_for_seeds(10, [&](Seed seed) { sim::Cluster(seed, program).run(); }));
}

TEST(StreamGradients, AValueThatIsNotUsedIsNamedByAFastPass) {
  // Goal: what was sent counts. Method: two values, one of them in the loss.
  Program program(source_functions());
  program.worker("server", [](Worker&) {});
  program.worker("trainer", [](Worker& worker) {
    const auto source = worker.remote<Source>("server");
    const AutogradContext context = worker.autograd_context();
    Stream<at::Tensor> stream =
        context.rpc_stream(source, &Source::multiples, at::ones({3}), int64_t{2});
    const at::Tensor first = *stream.next();
    EXPECT_TRUE(stream.next().has_value());  // It is not used.
    try {
      context.backward({first.sum()}, {.mode = PassMode::fast});
      ADD_FAILURE() << "the pass succeeded";
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::autograd);
      EXPECT_NE(error.error().text.find("a value of the stream 'Source.multiples'"),
                std::string::npos)
          << error.what();
    }
  });
  EXPECT_TRUE(sim::holds_for_seeds(3, [&](Seed seed) { sim::Cluster(seed, program).run(); }));
}

}  // namespace
}  // namespace rehearsal::testing
