#include "scenarios/traps/recorded.h"

#include <torch/nn/modules/container/sequential.h>
#include <torch/types.h>

#include <chrono>
#include <memory>
#include <vector>

#include "core/api/remote_layer.h"
#include "core/api/wait_all.h"

namespace rehearsal::traps {
namespace {

using torch::Tensor;

// The weights in one process.
struct Model {
  Tensor near = numbers(kNear).requires_grad_();
  Tensor far = numbers(kFar).requires_grad_();
  Tensor net = numbers(kNet).requires_grad_();
};

Tensor doubled(const Model&, const Tensor& x) { return x * 2; }
Tensor doubled_by_rows(const Model&, const Tensor& x) {
  return torch::stack({x[0] * 2, x[1] * 2, x[2] * 2});
}
Tensor through_near(const Model& model, const Tensor& x) { return torch::tanh(x * model.near); }
Tensor near_by_rows(const Model& model, const Tensor& x) {
  const Tensor scaled = through_near(model, x);
  return torch::stack({scaled[0], scaled[1], scaled[2]});
}
Tensor through_far(const Model& model, const Tensor& x) { return torch::tanh(x * model.far); }
Tensor through_both(const Model& model, const Tensor& x) {
  return through_far(model, through_near(model, x));
}
Tensor through_both_and_far(const Model& model, const Tensor& x) {
  return through_far(model, through_both(model, x));
}
Tensor doubled_through_far(const Model& model, const Tensor& x) {
  return through_far(model, x * 2);
}
Tensor through_net(const Model& model, const Tensor& x) { return torch::tanh(x * model.net); }
Tensor squared_by_net(const Model& model, const Tensor& x) { return through_net(model, x).pow(2); }

// A way to call, and what it calculates in one process.
struct Way {
  const char* name;
  Tensor (*call)(const Ground& ground, const Tensor& x);
  Tensor (*model)(const Model& model, const Tensor& x);
};

Tensor stacked(Stream<Tensor> stream) {
  std::vector<Tensor> rows;
  for (const Tensor& row : stream) rows.push_back(row);
  return torch::stack(rows);
}

const std::vector<Way>& calls_of_a_worker() {
  static const std::vector<Way> ways = {
      {"rpc_sync",
       [](const Ground& on, const Tensor& x) { return on.worker.rpc_sync("near", &twice, x); },
       doubled},
      {"rpc_async",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_async("near", &twice, x).wait();
       },
       doubled},
      {"remote, to_here",
       [](const Ground& on, const Tensor& x) {
         return on.worker.remote("near", &twice, x).to_here();
       },
       doubled},
      {"remote, to_here_async",
       [](const Ground& on, const Tensor& x) {
         return on.worker.remote("near", &twice, x).to_here_async().wait();
       },
       doubled},
      {"remote, Calls::to_here",
       [](const Ground& on, const Tensor& x) {
         return on.worker.to_here(on.worker.remote("near", &twice, x));
       },
       doubled},
      {"to oneself",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_sync(on.worker.name(), &twice, x);
       },
       doubled},
      {"with_timeout",
       [](const Ground& on, const Tensor& x) {
         return on.worker.with_timeout(Timeout::never()).rpc_sync("near", &twice, x);
       },
       doubled},
      {"stream",
       [](const Ground& on, const Tensor& x) {
         return stacked(on.worker.rpc_stream("near", &twice_by_rows, x));
       },
       doubled_by_rows},
      {"stream, next_async",
       [](const Ground& on, const Tensor& x) {
         auto rows = on.worker.with_credit(1).rpc_stream("near", &twice_by_rows, x);
         const std::vector<Future<std::optional<Tensor>>> three = {
             rows.next_async(), rows.next_async(), rows.next_async()};
         const Tensor all = torch::stack({*three[0].wait(), *three[1].wait(), *three[2].wait()});
         if (rows.next()) throw Trapped("a stream has a fourth row");
         return all;
       },
       doubled_by_rows},
      {"constructor",
       [](const Ground& on, const Tensor& x) {
         return on.worker.remote<Holder>("near", x).rpc_sync(&Holder::doubled);
       },
       doubled},
      {"WaitAll",
       [](const Ground& on, const Tensor& x) {
         WaitAll scope(on.worker);
         const Future<Tensor> result = scope.rpc_async("near", &twice, x);
         scope.finish();
         return result.wait();
       },
       doubled},
  };
  return ways;
}

const std::vector<Way>& calls_by_name() {
  static const std::vector<Way> ways = {
      {"by name",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_sync<Tensor>("near", "twice", x);
       },
       doubled},
      {"by name, async",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_async<Tensor>("near", "twice", x).wait();
       },
       doubled},
      {"by name, remote",
       [](const Ground& on, const Tensor& x) {
         return on.worker.remote_by_name<Tensor>("near", "twice", x).to_here();
       },
       doubled},
      {"operator",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_sync<Tensor>("near", "aten::mul.Scalar", x, 2);
       },
       doubled},
      {"operator, async",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_async<Tensor>("near", "aten::mul.Scalar", x, 2).wait();
       },
       doubled},
      {"script",
       [](const Ground& on, const Tensor& x) {
         return on.worker.rpc_sync<Tensor>("near", "script::lib.twice", x);
       },
       doubled},
      {"script, remote",
       [](const Ground& on, const Tensor& x) {
         return on.worker.remote_by_name<c10::IValue>("near", "script::lib.twice", x)
             .to_here()
             .toTensor();
       },
       doubled},
  };
  return ways;
}

const std::vector<Way>& calls_of_a_reference() {
  static const std::vector<Way> ways = {
      {"RRef::rpc_sync",
       [](const Ground& on, const Tensor& x) { return on.near.rpc_sync(&Scaler::forward, x); },
       through_near},
      {"RRef::rpc_async",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_async(&Scaler::forward, x).wait();
       },
       through_near},
      {"RRef::remote",
       [](const Ground& on, const Tensor& x) {
         return on.near.remote(&Scaler::forward, x).to_here();
       },
       through_near},
      {"RRef::rpc_stream",
       [](const Ground& on, const Tensor& x) {
         return stacked(on.near.rpc_stream(&Scaler::by_rows, x));
       },
       near_by_rows},
      {"RRef::with_timeout",
       [](const Ground& on, const Tensor& x) {
         return on.near.with_timeout(Timeout::never()).rpc_sync(&Scaler::forward, x);
       },
       through_near},
      {"RemoteModule::forward", [](const Ground& on, const Tensor& x) { return on.net.forward(x); },
       through_net},
      {"RemoteModule::forward_async",
       [](const Ground& on, const Tensor& x) { return on.net.forward_async(x).wait(); },
       through_net},
      {"RemoteModule::forward_remote",
       [](const Ground& on, const Tensor& x) { return on.net.forward_remote(x).to_here(); },
       through_net},
      {"RemoteModule::rpc_sync",
       [](const Ground& on, const Tensor& x) { return on.net.rpc_sync(&Net::squared, x); },
       squared_by_net},
      {"RemoteLayer",
       [](const Ground& on, const Tensor& x) {
         torch::nn::Sequential layers(std::make_shared<RemoteLayer<Net>>(on.net));
         return layers->forward(x);
       },
       through_net},
  };
  return ways;
}

const std::vector<Way>& calls_of_what_was_called() {
  static const std::vector<Way> ways = {
      {"a served function's reference",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_sync(&Scaler::through, x, on.far);
       },
       through_both},
      {"a served function's reference to a result",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_sync(&Scaler::by_reference, x, on.far);
       },
       through_both},
      {"a served function's continuations",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_sync(&Scaler::later, x, on.far);
       },
       through_both_and_far},
      {"a served function's to_here",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_sync(&Scaler::fetched, on.worker.rref(Tensor(x * 1)));
       },
       through_near},
      {"a served function's to_here_async",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_sync(&Scaler::fetched_later, on.worker.rref(Tensor(x * 1)));
       },
       through_near},
      {"to_here at a third worker",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_sync(&Scaler::fetched, on.far.remote(&Scaler::forward, x));
       },
       [](const Model& model, const Tensor& x) {
         return through_near(model, through_far(model, x));
       }},
      {"a batch",
       [](const Ground& on, const Tensor& x) { return on.hub.rpc_sync(&Hub::forward, x); },
       doubled_through_far},
      {"a continuation",
       [](const Ground& on, const Tensor& x) {
         return on.near.rpc_async(&Scaler::forward, x)
             .then([far = on.far](const Tensor& once) {
               return far.rpc_async(&Scaler::forward, once);
             })
             .wait();
       },
       through_both},
      {"a continuation of time",
       [](const Ground& on, const Tensor& x) {
         return on.worker.after(std::chrono::milliseconds(1))
             .then([near = on.near, x](Unit) { return near.rpc_async(&Scaler::forward, x); })
             .wait();
       },
       through_near},
      {"a continuation of all",
       [](const Ground& on, const Tensor& x) {
         return on.worker.when_all<Tensor>({on.near.rpc_async(&Scaler::forward, x)})
             .then([far = on.far](const std::vector<Tensor>& all) {
               return far.rpc_async(&Scaler::forward, all.front());
             })
             .wait();
       },
       through_both},
  };
  return ways;
}

void expect_same(const Way& way, const std::string& what, const Tensor& gradient,
                 const Tensor& expected) {
  const bool same = gradient.defined() == expected.defined() &&
                    (!expected.defined() || torch::equal(gradient, expected));
  if (same) return;
  throw Trapped(std::string(way.name) + ": the gradient of " + what +
                (gradient.defined() ? " is not that of one process" : " is lost"));
}

// Four gradients.
void compare(const Ground& ground, const Way& way) {
  const Tensor x = numbers(kX).requires_grad_();
  const AutogradContext context = ground.worker.autograd_context();
  const auto recording = context.record();
  const Tensor loss = way.call(ground, x).sum();
  context.backward({loss});

  const Model model;
  const Tensor same_x = numbers(kX).requires_grad_();
  const Tensor same_loss = way.model(model, same_x).sum();
  same_loss.backward();
  if (!torch::equal(loss, same_loss)) throw Trapped(std::string(way.name) + ": a wrong loss");
  expect_same(way, "x", context.get_gradients().find(x), same_x.grad());
  expect_same(way, "'near'", ground.near.rpc_sync(&Scaler::gradient), model.near.grad());
  expect_same(way, "'far'", ground.far.rpc_sync(&Scaler::gradient), model.far.grad());
  expect_same(way, "the module", ground.net.rpc_sync(&Net::gradient), model.net.grad());
}

}  // namespace

Ground make_ground(Worker& worker) {
  const RRef<Scaler> far = worker.remote<Scaler>("far", kFar);
  return {.worker = worker,
          .near = worker.remote<Scaler>("near", kNear),
          .far = far,
          .hub = worker.remote<Hub>("near", far),
          .net = RemoteModule<Net>(worker, "far", kNet)};
}

int64_t compare_recorded(const Ground& ground) {
  int64_t compared = 0;
  for (const auto& ways :
       {calls_of_a_worker(), calls_by_name(), calls_of_a_reference(), calls_of_what_was_called()})
    for (const Way& way : ways) {
      compare(ground, way);
      compared += 4;
    }
  return compared;
}

}  // namespace rehearsal::traps
