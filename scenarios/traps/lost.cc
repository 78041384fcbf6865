#include "scenarios/traps/lost.h"

#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <vector>

#include "core/api/batcher.h"
#include "core/api/distributed_optimizer.h"

namespace rehearsal::traps {
namespace {

using torch::Tensor;

Tensor leaf() { return numbers(kX).requires_grad_(); }

// The pass over what was called beside the context, though one is there.
void backward_beside(const Ground& on, const std::function<Tensor(const Tensor& x)>& call) {
  const AutogradContext context = on.worker.autograd_context();
  const Tensor out = call(leaf());
  const auto recording = context.record();
  context.backward({on.far.rpc_sync(&Scaler::forward, out).sum()});
}

void function_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) { return on.worker.rpc_sync("near", &twice, x); });
}
void continuation_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) {
    return on.worker.rpc_async("near", &twice, x)
        .then([&on](const Tensor& once) { return on.worker.rpc_async("far", &twice, once); })
        .wait();
  });
}
void method_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) { return on.near.rpc_sync(&Scaler::forward, x); });
}
void script_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) {
    return on.worker.rpc_sync<Tensor>("near", "script::lib.twice", x);
  });
}
void operator_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) {
    return on.worker.rpc_sync<Tensor>("near", "aten::mul.Scalar", x, 2);
  });
}
void module_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) { return on.net.forward(x); });
}
void stream_beside(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) {
    auto rows = on.near.rpc_stream(&Scaler::by_rows, x);
    Tensor first = *rows.next();
    while (rows.next()) continue;
    return first;
  });
}
void gathering(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) {
    return on.worker.all_gather<Tensor>(x * 2, {on.worker.name()}).begin()->second;
  });
}
void exception(const Ground& on) {
  backward_beside(on, [&](const Tensor& x) -> Tensor {
    try {
      return on.worker.rpc_sync("near", &refuse, x);
    } catch (const TooLarge& thrown) {
      return thrown.value;
    }
  });
}

// The argument was sent before there was a context; its result is fetched in it.
void creation_before(const Ground& on) {
  const RRef<Tensor> doubled = on.worker.remote("near", &twice, leaf());
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  context.backward({doubled.to_here().sum()});
}

// A worker keeps a tensor from a call outside of any context, and uses it in one.
void kept_before(const Ground& on) {
  on.near.rpc_sync(&Scaler::keep, leaf());
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  context.backward({on.near.rpc_sync(&Scaler::of_kept).sum()});
}

// The same from another context, which goes on.
void other_context(const Ground& on) {
  const AutogradContext other = on.worker.autograd_context();
  const Tensor before = other.rpc_sync(on.near, &Scaler::forward, leaf());
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  context.backward({on.far.rpc_sync(&Scaler::forward, before).sum()});
}

// A batch of items from two contexts is recorded in neither.
void batch_of_two_contexts(const Ground& on) {
  Batcher<Tensor, Tensor> batcher(on.worker, {.size = 2}, [&on](std::vector<Tensor> items) {
    const Tensor both = on.near.rpc_sync(&Scaler::forward, items.at(0) + items.at(1));
    return std::vector<Tensor>{both, both};
  });
  const AutogradContext other = on.worker.autograd_context();
  Future<Tensor> first;
  {
    const auto recording = other.record();
    first = batcher.add(leaf());
  }
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  const Future<Tensor> second = batcher.add(leaf());
  first.wait();
  context.backward({second.wait().sum()});
}

void gradients_off(const Ground& on) {
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  Tensor constant;
  {
    const torch::NoGradGuard no_grad;
    constant = on.near.rpc_sync(&Scaler::forward, numbers(kX));
  }
  context.backward({on.far.rpc_sync(&Scaler::forward, constant).sum()});
}

// Recorded, but the argument's gradient was not wanted when it was sent.
void argument_with_gradients_off(const Ground& on) {
  const AutogradContext context = on.worker.autograd_context();
  Tensor out;
  {
    const torch::NoGradGuard no_grad;
    out = context.rpc_sync(on.near, &Scaler::forward, leaf());
  }
  context.backward({out.sum()});
}

void context_has_ended(const Ground& on) {
  const Promise<int64_t> later = on.worker.promise<int64_t>();
  Future<Tensor> result;
  {
    const AutogradContext context = on.worker.autograd_context();
    const auto recording = context.record();
    result =
        later.future().then([&on](int64_t) { return on.near.rpc_async(&Scaler::forward, leaf()); });
  }
  later.complete(1);
  result.wait();
}

void context_in_a_context(const Ground& on) {
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  const auto again = context.record();
  const AutogradContext other = on.worker.autograd_context();
  const auto refused = other.record();
}

void step_without_gradients(const Ground& on) {
  DistributedOptimizer optimizer(on.worker, on.near.rpc_sync(&Scaler::parameters),
                                 torch::optim::SGDOptions(0.1));
  const AutogradContext context = on.worker.autograd_context();
  {
    const auto recording = context.record();
    context.backward({on.far.rpc_sync(&Scaler::forward, leaf()).sum()});
  }
  optimizer.allow_owners_without_gradients();
  optimizer.step(context);
  optimizer.allow_owners_without_gradients(false);
  optimizer.step(context);
}

struct Trap {
  const char* name;
  void (*step_into)(const Ground& ground);
  std::vector<const char*> told;  // parts of the error's text
};

const std::vector<Trap>& traps() {
  constexpr const char* outside = "outside any autograd context";
  static const std::vector<Trap> all = {
      {"a call beside the context",
       function_beside,
       {"the result of 'twice', which 'near' sent to 'trainer'", outside}},
      {"a continuation beside the context",
       continuation_beside,
       {"the result of 'twice', which 'far' sent to 'trainer'", outside}},
      {"a method beside the context",
       method_beside,
       {"the result of 'Scaler.forward', which 'near' sent to 'trainer'", outside}},
      {"a script beside the context",
       script_beside,
       {"the result of 'script::lib.twice', which 'near' sent to 'trainer'", outside}},
      {"an operator beside the context",
       operator_beside,
       {"the result of 'aten::mul.Scalar', which 'near' sent to 'trainer'", outside}},
      {"a module beside the context",
       module_beside,
       {"the result of 'Net.forward', which 'far' sent to 'trainer'", outside}},
      {"a stream beside the context",
       stream_beside,
       {"the result of 'Scaler.by_rows', which 'near' sent to 'trainer'", outside}},
      {"a gathering", gathering, {"gather", "'trainer' sent to 'trainer'", outside}},
      {"an exception",
       exception,
       {"the exception of 'refuse', which 'near' sent to 'trainer'", "no context records"}},
      {"a creation before the context",
       creation_before,
       {"the arguments of 'twice', which 'trainer' sent to 'near'", outside}},
      {"a tensor kept from before the context",
       kept_before,
       {"the arguments of 'Scaler.keep', which 'trainer' sent to 'near'", outside}},
      {"a tensor of another context",
       other_context,
       {"the result of 'Scaler.forward', which 'near' sent to 'trainer'",
        "another autograd context"}},
      {"a batch of two contexts",
       batch_of_two_contexts,
       {"the result of 'Scaler.forward', which 'near' sent to 'trainer'", outside}},
      {"a call with gradients switched off",
       gradients_off,
       {"the result of 'Scaler.forward', which 'near' sent to 'trainer'", outside}},
      {"an argument with gradients switched off",
       argument_with_gradients_off,
       {"the arguments of 'Scaler.forward', which 'trainer' sent to 'near'",
        "gradients switched off"}},
      {"a continuation after the context's end", context_has_ended, {"has ended: keep it"}},
      {"a context in a context", context_in_a_context, {"is recorded in", "already"}},
      {"a step without gradients",
       step_without_gradients,
       {"the parameter of 'near' has no gradient"}},
  };
  return all;
}

void expect_told(const Ground& ground, const Trap& trap) {
  try {
    trap.step_into(ground);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::autograd) throw;
    for (const char* part : trap.told)
      if (error.error().text.find(part) == std::string::npos)
        throw Trapped(std::string(trap.name) + ": '" + error.error().text + "' does not name \"" +
                      part + "\"");
    return;
  }
  throw Trapped(std::string(trap.name) + ": nobody was told");
}

// A tensor from outside of a context becomes a leaf of one's own when one says so.
void take_as_leaf(const Ground& on) {
  const Tensor own = on.worker.rpc_sync("near", &twice, leaf()).detach().requires_grad_();
  const AutogradContext context = on.worker.autograd_context();
  const auto recording = context.record();
  context.backward({on.worker.rpc_sync("far", &twice, own).sum()});
  if (!torch::equal(context.get_gradients().find(own), torch::full_like(own, 2)))
    throw Trapped("a leaf of one's own has another gradient");
}

}  // namespace

int64_t step_into_traps(const Ground& ground) {
  for (const Trap& trap : traps()) expect_told(ground, trap);
  take_as_leaf(ground);
  return static_cast<int64_t>(traps().size());
}

}  // namespace rehearsal::traps
