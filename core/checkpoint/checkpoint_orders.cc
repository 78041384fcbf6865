#include "core/checkpoint/checkpoint_orders.h"

#include <map>

#include "core/api/distributed_checkpoint.h"
#include "core/checkpoint/kept_tensors.h"
#include "core/functions/function_registry.h"

namespace rehearsal {

namespace checkpoint_orders {

HeldCheckpoints held(CallContext& call, const std::string& name) {
  return at_desk(call, [&](CheckpointDesk& desk) { return desk.held(call, name); });
}

void open(CallContext& call, const CheckpointOpening& opening) {
  at_desk(call, [&](CheckpointDesk& desk) { desk.open(call, call.caller_info().name, opening); });
}

void close(CallContext& call, const CheckpointOrder& order) {
  at_desk(call, [&](CheckpointDesk& desk) { desk.close(order); });
}

std::vector<c10::IValue> pieces(CallContext& call, const CheckpointOrder& order,
                                const std::vector<std::string>& names) {
  return at_desk(call, [&](CheckpointDesk& desk) {
    std::vector<c10::IValue> found;
    for (const std::string& name : names) {
      std::optional<c10::IValue> piece = desk.piece_here(order, name);
      if (!piece)
        fail_checkpoint(ErrorKind::storage, "worker '" + call.name() + "' has no '" + name + "'",
                        call.name());
      found.push_back(std::move(*piece));
    }
    return found;
  });
}

void keep_tensor(CallContext& call, const CheckpointOrder& order, const std::string& name,
                 const RRef<at::Tensor>& tensor) {
  keep_tensors(call, order, {{name, tensor.local_value()}});
}

std::vector<std::string> load_tensor(CallContext& call, const CheckpointOrder& order,
                                     const std::string& name, const RRef<at::Tensor>& tensor) {
  return load_tensors(call, order, {{name, tensor.local_value()}});
}

void write(CallContext& call, const CheckpointOrder& order, const std::vector<std::string>& holders,
           const CheckpointTag& committed) {
  at_desk(call, [&](CheckpointDesk& desk) { desk.write(call, order, holders, committed); });
}

void commit(CallContext& call, const CheckpointOrder& order) {
  at_desk(call, [&](CheckpointDesk& desk) { desk.commit(call, order); });
}

}  // namespace checkpoint_orders

std::vector<c10::IValue> find_pieces(const WorkerAccess& here, const CheckpointOrder& order,
                                     const std::vector<std::string>& pieces) {
  std::vector<c10::IValue> found(pieces.size());
  std::map<std::string, std::vector<size_t>> elsewhere;  // by holder
  at_desk(here, [&](CheckpointDesk& desk) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (std::optional<c10::IValue> piece = desk.piece_here(order, pieces[i])) {
        found[i] = std::move(*piece);
        continue;
      }
      const std::string holder = desk.holder_of(order, pieces[i]);
      if (holder.empty())
        fail_checkpoint(ErrorKind::storage,
                        "step " + std::to_string(order.tag.step) + " of '" + order.name +
                            "' has no '" + pieces[i] + "'",
                        here.name());
      elsewhere[holder].push_back(i);
    }
  });
  std::vector<std::pair<std::vector<size_t>, Future<std::vector<c10::IValue>>>> asked;
  for (auto& [holder, places] : elsewhere) {
    std::vector<std::string> names;
    for (const size_t place : places) names.push_back(pieces[place]);
    asked.emplace_back(places, here.with_timeout(Timeout::never())
                                   .rpc_async(holder, &checkpoint_orders::pieces, order, names));
  }
  for (auto& [places, answer] : asked) {
    std::vector<c10::IValue> values = answer.wait();
    for (size_t i = 0; i < places.size(); ++i) found[places[i]] = std::move(values.at(i));
  }
  return found;
}

void register_checkpoints(FunctionRegistry& registry) {
  registry.function("rehearsal.checkpoint_held", &checkpoint_orders::held)
      .function("rehearsal.checkpoint_open", &checkpoint_orders::open)
      .function("rehearsal.checkpoint_close", &checkpoint_orders::close)
      .function("rehearsal.checkpoint_pieces", &checkpoint_orders::pieces)
      .function("rehearsal.checkpoint_keep", &checkpoint_orders::keep_tensor)
      .function("rehearsal.checkpoint_load", &checkpoint_orders::load_tensor)
      .function("rehearsal.checkpoint_write", &checkpoint_orders::write)
      .function("rehearsal.checkpoint_commit", &checkpoint_orders::commit);
}

StateMaker checkpoint_state() {
  return {typeid(CheckpointDesk), [](Worker&) { return std::make_shared<CheckpointDesk>(); }};
}

}  // namespace rehearsal
