// Executions know the context that they are recorded in; what is recorded in none is told.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "core/api/batcher.h"
#include "core/autograd/unrecorded.h"
#include "core/base/mutants.h"
#include "coverage/marks.h"
#include "sim/cluster.h"
#include "sim/gtest.h"
#include "tests/core/autograd/remote_model.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;

at::Tensor doubled(const at::Tensor& input) { return input * 2; }

// By its reference, not by a CallContext.
at::Tensor through(const at::Tensor& input, const RRef<Layer>& next) {
  return next.rpc_sync(&Layer::forward, input * 2);
}

// In a continuation.
Future<at::Tensor> through_later(CallContext& call, const at::Tensor& input,
                                 const RRef<Layer>& next) {
  return call.after(std::chrono::milliseconds(1)).then([next, input](Unit) {
    return next.rpc_async(&Layer::forward, input * 2);
  });
}

bool is_recorded(CallContext& call) { return call.autograd_context().has_value(); }

// Asks another worker in batches of two whether a context came with the question.
class Asker {
 public:
  explicit Asker(CallContext& call)
      : batcher_(
            call, {.size = 2, .delay = {}},
            [calls = Calls(call.caller(), call.references())](const std::vector<int64_t>& items) {
              return std::vector<int64_t>(items.size(),
                                          calls.rpc_sync("server", &is_recorded) ? 1 : 0);
            }) {}
  Future<int64_t> ask() { return batcher_.add(0); }

 private:
  Batcher<int64_t, int64_t> batcher_;
};

FunctionRegistry functions() {
  FunctionRegistry registry = layer_functions();
  registry.function("doubled", &doubled)
      .function("through", &through)
      .function("through_later", &through_later)
      .function("is_recorded", &is_recorded);
  registry.type<Asker>("Asker").constructor<CallContext&>().method("ask", &Asker::ask);
  return registry;
}

// A trainer and a server.
Program train(const Program::Main& main) {
  Program program(functions());
  program.worker("server").worker("trainer", main);
  return program;
}

Error autograd_error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const RpcError& thrown) {
    EXPECT_EQ(thrown.kind(), ErrorKind::autograd) << thrown.what();
    return thrown.error();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Recording, LastsAsLongAsItsScopeAndMayBeRepeatedButNotMixed) {
  // Goal: what a scope changes, and what it refuses. Method: a function says whether a context came
  // with its call; scopes side by side, one in another, of the same context and of two.
  const Program program = train([](Worker& worker) {
    const auto recorded = [&] { return worker.rpc_sync("server", &is_recorded); };
    const AutogradContext context = worker.autograd_context();
    const AutogradContext other = worker.autograd_context();
    EXPECT_FALSE(recorded());
    {
      const auto recording = context.record();
      EXPECT_TRUE(recorded());
      {
        const auto again = context.record();
        EXPECT_TRUE(recorded());
        const at::NoGradGuard no_grad;
        EXPECT_FALSE(recorded());
        EXPECT_TRUE(context.rpc_sync("server", &is_recorded));
      }
      EXPECT_TRUE(recorded());
      const Error refused = autograd_error_of([&] { const auto second = other.record(); });
      EXPECT_NE(refused.text.find(to_string(context.id()) + " already"), std::string::npos);
      EXPECT_EQ(refused.worker, "trainer");
      EXPECT_TRUE(recorded());
    }
    EXPECT_FALSE(recorded());
    const auto second = other.record();
    EXPECT_TRUE(recorded());
  });
  Cluster(Seed{1}, program).run();
}

TEST(Recording, KeepsItsContext) {
  // Goal: a context is not over while something is recorded in it. Method: nothing else holds it.
  const Program program = train([](Worker& worker) {
    const auto recording = worker.autograd_context().record();
    EXPECT_TRUE(worker.rpc_sync("server", &is_recorded));
    EXPECT_EQ(worker.debug_info().at("autograd.contexts"), "1");
  });
  Cluster(Seed{1}, program).run();
}

TEST(Recording, AnExplicitContextWins) {
  // Goal: a call through a context is recorded in that one. Method: the pass of each finds its own.
  const Program program = train([](Worker& worker) {
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const AutogradContext other = worker.autograd_context();
    const auto recording = context.record();
    other.backward({other.rpc_sync("server", &doubled, w).sum()});
    context.backward({worker.rpc_sync("server", &doubled, w * 3).sum()});
    EXPECT_TRUE(equal_bits(other.get_gradients().find(w), at::full({3}, 2.0F)));
    EXPECT_TRUE(equal_bits(context.get_gradients().find(w), at::full({3}, 6.0F)));
  });
  Cluster(Seed{1}, program).run();
}

TEST(Recording, TheBodyOfABatchIsRecordedIfAllItsItemsAreInOneContext) {
  // Goal: a batch belongs to the context of its items, if that is one. Method: two of one context,
  // two of different ones, and one of none beside one.
  const Program program = train([](Worker& worker) {
    auto asker = worker.remote<Asker>("server");
    const AutogradContext context = worker.autograd_context();
    const AutogradContext other = worker.autograd_context();
    const Calls none = worker;
    const auto ask = [&](const Calls& first, const Calls& second) {
      const auto one = first.rpc_async(asker, &Asker::ask);
      const auto two = second.rpc_async(asker, &Asker::ask);
      EXPECT_EQ(one.wait(), two.wait());
      return one.wait();
    };
    EXPECT_EQ(ask(context, context), 1);
    EXPECT_EQ(ask(context, other), 0);
    EXPECT_EQ(ask(none, context), 0);
    EXPECT_EQ(ask(context, none), 0);
    EXPECT_EQ(ask(none, none), 0);
  });
  EXPECT_TRUE(sim::holds_for_seeds(20, [&](Seed seed) { Cluster(seed, program).run(); }));
}

TEST(Recording, ACallInAContextThatHasEndedIsRefusedBeforeItIsSent) {
  // Goal: no error of a stranger, and nothing that opens the context again. Method: a continuation
  // that runs after the end calls, and creates, at a worker that has never met the context.
  coverage::Marks marks;
  const Program program = train([](Worker& worker) {
    const Promise<int64_t> later = worker.promise<int64_t>();
    Future<at::Tensor> called;
    Future<at::Tensor> created;
    {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      const at::Tensor w = numbers({3}, 5).requires_grad_();
      called = later.future().then(
          [&worker, w](int64_t) { return worker.rpc_async("server", &doubled, w); });
      created = later.future().then(
          [&worker, w](int64_t) { return worker.remote("server", &doubled, w).to_here_async(); });
    }
    later.complete(1);
    for (const auto& future : {called, created}) {
      const Error error = autograd_error_of([&] { (void)future.wait(); });
      EXPECT_NE(error.text.find("has ended: keep it"), std::string::npos) << error.text;
    }
  });
  ClusterOptions options;
  options.traces = {&marks};
  Cluster cluster(Seed{1}, program, options);
  cluster.run();
  EXPECT_TRUE(marks.reached("a call was made in an autograd context that has ended"));
  EXPECT_FALSE(marks.reached("a call came for an autograd context that has ended"));
}

// ---- what is recorded nowhere ---------------------------------------------------

TEST(Unrecorded, AMarkStaysWithItsTensorAndDiesWithIt) {
  // Goal: nothing loses the mark but detach; LibTorch's own backward does not mind it. Method: a
  // hook, another value of requires_grad, a pass of LibTorch's.
  const at::Tensor leaf = numbers({3}, 5).requires_grad_();
  const auto how = std::make_shared<const std::string>("the result of 'f'");
  EXPECT_EQ(how_it_came(leaf), nullptr);
  mark_as_unrecorded(leaf, how);
  int hooks = 0;
  leaf.register_hook([&hooks](const at::Tensor&) { ++hooks; });
  leaf.set_requires_grad(false).set_requires_grad(true);
  ASSERT_NE(how_it_came(leaf), nullptr);
  EXPECT_EQ(*how_it_came(leaf), "the result of 'f'");
  EXPECT_EQ(how_it_came(leaf.detach().requires_grad_()), nullptr);
  (leaf * 2).sum().backward();
  EXPECT_EQ(hooks, 1);
  EXPECT_TRUE(equal_bits(leaf.grad(), at::full({3}, 2.0F)));
  const std::weak_ptr<const std::string> watched = how;
  {
    const at::Tensor other = numbers({3}, 5).requires_grad_();
    mark_as_unrecorded(other, std::make_shared<const std::string>(*how));
  }
  EXPECT_EQ(how.use_count(), 2);
}

TEST(Unrecorded, IsToldOfTheResultOfACallBesideTheContext) {
  // Goal: the error says which call it was and what to do. Method: the whole of it.
  const Program program = train([](Worker& worker) {
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    const AutogradContext context = worker.autograd_context();
    const at::Tensor out = worker.rpc_sync("server", &doubled, w);
    const Error error = autograd_error_of([&] { context.backward({(out * 2).sum()}); });
    EXPECT_EQ(
        error.text,
        "gradients would be lost: the pass reached the result of 'doubled', which 'server' "
        "sent to 'trainer' outside any autograd context. Make that call in the context of "
        "the pass, while a Recording of it lives (context.record()) and in no shielded scope, "
        "or through it; or use "
        "tensor.detach().requires_grad_() if it is to be a leaf of its own");
    EXPECT_EQ(error.worker, "trainer");
    EXPECT_TRUE(context.get_gradients().empty());
    // Nothing is lost where nothing would flow, and LibTorch's own pass takes it for a leaf.
    context.backward({(out.detach() * w).sum()});
    EXPECT_TRUE(equal_bits(context.get_gradients().find(w), out.detach()));
    out.sum().backward();
    EXPECT_TRUE(equal_bits(out.grad(), at::ones({3})));
  });
  Cluster(Seed{1}, program).run();
}

TEST(Unrecorded, ManyAnswersLeaveNothing) {
  // Goal: nothing grows with what comes unrecorded. Method: many tensors that nobody keeps, and the
  // tables afterwards.
  const Program program = train([](Worker& worker) {
    const at::Tensor w = numbers({3}, 5).requires_grad_();
    for (int i = 0; i < 2000; ++i) (void)worker.rpc_sync("server", &doubled, w);
    const DebugInfo info = worker.debug_info();
    EXPECT_EQ(info.at("autograd.contexts"), "0");
    EXPECT_EQ(info.at("rpc.pending_calls"), "0");
  });
  Cluster(Seed{1}, program).run();
}

// ---- the rules, left out ----------------------------------------------------------

// Whether the pass through such a function, and one that loses its gradient, end as they must.
bool trains(const std::string& mutant, const Program::Main& main) {
  Program program(functions());
  program.worker("server").worker("far").worker("trainer", main);
  ClusterOptions options;
  options.adjust_node = [&mutant](NodeOptions& node) {
    if (!mutant.empty()) node.mutants = {mutant};
  };
  return Cluster(Seed{1}, program, options).try_run().ok;
}

template <auto function>
void train_by(Worker& worker) {
  auto layer = worker.remote<Layer>("far", 4, 1);
  const at::Tensor w = numbers({3, 4}, 5).requires_grad_();
  const AutogradContext context = worker.autograd_context();
  const auto recording = context.record();
  context.backward({worker.rpc_sync("server", function, w, layer).sum()});
  Layer same(4, 1);
  const auto expected = local_gradients(same.forward(w * 2).sum(), {w, same.weight_});
  if (!equal_bits(context.get_gradients().find(w), expected[0]) ||
      !equal_bits(layer.rpc_sync(&Layer::gradients).at(0), expected[1]))
    throw std::logic_error("a wrong gradient");
}

TEST(RecordingRules, AServedFunctionRunsInTheContextOfItsCall) {
  EXPECT_TRUE(trains("", train_by<&through>));
  if (!kHasMutants) return;
  EXPECT_FALSE(trains("execution_forgets_context", train_by<&through>));
}

TEST(RecordingRules, AContinuationRunsInTheContextOfWhoeverGaveIt) {
  EXPECT_TRUE(trains("", train_by<&through_later>));
  if (!kHasMutants) return;
  EXPECT_FALSE(trains("continuation_forgets_context", train_by<&through_later>));
}

void lose_gradient(Worker& worker) {
  const at::Tensor w = numbers({3}, 5).requires_grad_();
  const AutogradContext context = worker.autograd_context();
  const at::Tensor out = worker.rpc_sync("server", &doubled, w);
  try {
    context.backward({out.sum()});
  } catch (const RpcError&) {
    return;
  }
  throw std::logic_error("nobody was told");
}

TEST(RecordingRules, WhatCameOutsideOfAnyContextIsMarked) {
  EXPECT_TRUE(trains("", lose_gradient));
  if (!kHasMutants) return;
  EXPECT_FALSE(trains("unrecorded_not_marked", lose_gradient));
}

}  // namespace
}  // namespace rehearsal::testing
