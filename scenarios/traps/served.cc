#include "scenarios/traps/served.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>

namespace rehearsal::traps {
namespace {

using std::chrono::milliseconds;

constexpr const char* kScript = R"(
def twice(x):
    return x * 2
)";

std::vector<torch::Tensor> all_forward(const RRef<Scaler>& next,
                                       const std::vector<torch::Tensor>& items) {
  std::vector<torch::Tensor> results;
  for (const torch::Tensor& item : items)
    results.push_back(next.rpc_sync(&Scaler::forward, item * 2));
  return results;
}

}  // namespace

torch::Tensor numbers(double first) {
  return torch::sin(torch::arange(12, torch::kDouble) + first).reshape({3, 4});
}

torch::Tensor twice(const torch::Tensor& x) { return x * 2; }

void twice_by_rows(CallContext&, StreamWriter<torch::Tensor>& rows, const torch::Tensor& x) {
  for (int64_t row = 0; row < x.size(0); ++row) rows.write(x[row] * 2);
}

torch::Tensor refuse(const torch::Tensor& x) {
  TooLarge thrown("too large");
  thrown.value = x * 2;
  throw thrown;
}

torch::Tensor Scaler::through(const torch::Tensor& x, const RRef<Scaler>& next) {
  return next.rpc_sync(&Scaler::forward, forward(x));
}

Future<torch::Tensor> Scaler::later(CallContext& call, const torch::Tensor& x,
                                    const RRef<Scaler>& next) {
  return call.after(milliseconds(1)).then([next, scaled = forward(x)](Unit) {
    return next.rpc_async(&Scaler::forward, scaled).then([next](const torch::Tensor& once) {
      return next.rpc_async(&Scaler::forward, once);
    });
  });
}

torch::Tensor Scaler::by_reference(const torch::Tensor& x, const RRef<Scaler>& next) {
  return next.remote(&Scaler::forward, forward(x)).to_here();
}

Future<torch::Tensor> Scaler::fetched_later(const RRef<torch::Tensor>& x) {
  return x.to_here_async().then([this](const torch::Tensor& here) { return forward(here); });
}

void Scaler::by_rows(CallContext&, StreamWriter<torch::Tensor>& rows, const torch::Tensor& x) {
  const torch::Tensor scaled = forward(x);
  for (int64_t row = 0; row < x.size(0); ++row) rows.write(scaled[row]);
}

Hub::Hub(CallContext& call, const RRef<Scaler>& next)
    : batcher_(call, {.size = 1, .delay = {}}, [next](const std::vector<torch::Tensor>& items) {
        return all_forward(next, items);
      }) {}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("twice", &twice)
      .function("twice_by_rows", &twice_by_rows)
      .function("refuse", &refuse)
      .exception<TooLarge>("TooLarge")
      .script("lib", kScript);
  registry.type<Scaler>("Scaler")
      .constructor<double>()
      .method("forward", &Scaler::forward)
      .method("through", &Scaler::through)
      .method("later", &Scaler::later)
      .method("by_reference", &Scaler::by_reference)
      .method("fetched", &Scaler::fetched)
      .method("fetched_later", &Scaler::fetched_later)
      .method("by_rows", &Scaler::by_rows)
      .method("keep", &Scaler::keep)
      .method("of_kept", &Scaler::of_kept)
      .method("gradient", &Scaler::gradient)
      .method("parameters", &Scaler::parameters);
  registry.type<Hub>("Hub").constructor<CallContext&, RRef<Scaler>>().method("forward",
                                                                             &Hub::forward);
  registry.type<Holder>("Holder").constructor<torch::Tensor>().method("doubled", &Holder::doubled);
  register_module<Net, double>(registry, "Net")
      .method("squared", &Net::squared)
      .method("gradient", &Net::gradient);
  return registry;
}

}  // namespace rehearsal::traps
