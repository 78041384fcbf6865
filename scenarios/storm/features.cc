#include "scenarios/storm/features.h"

#include <ATen/Functions.h>

#include <chrono>

#include "core/api/remote_module.h"

namespace rehearsal::storm {
namespace {

constexpr const char* kScript = R"(
def blend(x: Tensor, *, share: int = 1, times: int = 1) -> Tensor:
    total = x * 0
    for _ in range(times):
        total = total + x * share
    return total
)";

}  // namespace

Doubler::Doubler(CallContext& context)
    : batcher_(context, {.size = 3, .delay = std::chrono::milliseconds(2)},
               [](std::vector<int64_t> numbers) {
                 for (int64_t& number : numbers) number *= 2;
                 return numbers;
               }) {}

void refuse_at_last(CallContext& context, StreamWriter<int64_t>& out, const Journey& journey) {
  for (int64_t item = 0; item < journey.value % 5; ++item) out.write(item);
  (void)refuse(context, journey);
}

int64_t refuse(CallContext& context, const Journey& journey) {
  if (journey.hops > 0) {
    const Leg leg = next_leg(journey, context.caller()->names().size());
    return context.rpc_sync(leg.to, &refuse, leg.journey);
  }
  Refusal refusal("refused " + std::to_string(journey.value));
  refusal.number = journey.value;
  refusal.counter = context.rref(Counter(journey.value));
  throw refusal;
}

Weight::Weight(double weight) {
  weight_ =
      register_parameter("weight", at::full({1}, weight, at::TensorOptions().dtype(at::kDouble)));
}

void register_features(FunctionRegistry& registry) {
  registry.type<Doubler>("Doubler").constructor<CallContext&>().method("twice", &Doubler::twice);
  registry.exception<Refusal>("Refusal").function("refuse", &refuse);
  registry.function("refuse_at_last", &refuse_at_last);
  register_module<Weight, double>(registry, "Weight");
  registry.script("storm", kScript);
}

}  // namespace rehearsal::storm
