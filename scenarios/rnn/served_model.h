// The parts of the language model that a parameter server keeps, as trainers use them.
#pragma once

#include <vector>

#include "core/api/call_context.h"
#include "core/api/function_registry.h"
#include "scenarios/models/language_model.h"

namespace rehearsal::rnn {

// A module that lives at its owner and is used through an RRef.
template <class Module>
class Served : public Module {
 public:
  using Module::Module;

  // Moves it to a device of its owner.
  void place(CallContext& context, int device) { this->to(context.device(device)); }

  torch::Tensor forward(const torch::Tensor& input) {
    return Module::forward(input.to(this->parameters().front().device()));
  }

  // A reference to each parameter, for a DistributedOptimizer. The parameters stay here.
  std::vector<RRef<torch::Tensor>> parameter_rrefs(CallContext& context) {
    std::vector<RRef<torch::Tensor>> rrefs;
    for (const torch::Tensor& parameter : this->parameters()) {
      rrefs.push_back(context.rref(parameter));
    }
    return rrefs;
  }

  // The present parameters, without any graph.
  std::vector<torch::Tensor> values() {
    std::vector<torch::Tensor> values;
    for (const torch::Tensor& parameter : this->parameters()) {
      values.push_back(parameter.detach().clone());
    }
    return values;
  }
};

using ServedTable = Served<models::EmbeddingTable>;
using ServedDecoder = Served<models::Decoder>;

// The references by which a trainer reaches the server's parts.
struct ModelRefs {
  RRef<ServedTable> table;
  RRef<ServedDecoder> decoder;

  friend void describe(ModelRefs& refs, auto&& fields) { fields(refs.table, refs.decoder); }
};

void register_served_model(FunctionRegistry& registry);

}  // namespace rehearsal::rnn
