#include "scenarios/random_model/leader.h"

#include <chrono>
#include <utility>

#include "scenarios/random_model/sums.h"
#include "scenarios/storm/dice.h"

namespace rehearsal::random_model {

bool is_loss(ErrorKind kind) {
  return kind == ErrorKind::timeout || kind == ErrorKind::peer_lost || kind == ErrorKind::fenced ||
         kind == ErrorKind::cancelled || kind == ErrorKind::rref_deleted ||
         kind == ErrorKind::autograd;
}

Attempt::Attempt(const Worker& worker, const Model& model, const Reference& reference,
                 std::function<void(const RpcError&)> on_failed_pass)
    : worker_(worker),
      model_(model),
      reference_(reference),
      on_failed_pass_(std::move(on_failed_pass)),
      context_(worker.autograd_context()),
      held_(model.nodes.size()) {
  for (uint32_t id = 0; id < model.workers; ++id)
    parts_.push_back(worker_.remote<Part>(WorkerId{id}, static_cast<int64_t>(id)));
}

Outputs Attempt::run() {
  if (!model_.leads_all) refer_to_leaves();
  const auto recording = context_.record();
  if (model_.leads_all) refer_to_leaves();
  for (size_t i = 0; i < model_.nodes.size(); ++i)
    if (model_.nodes[i].op == Operator::loss)
      run_loss(i);
    else if (!is_leaf(model_.nodes[i]))
      run_node(i);
  if (!model_.hurries) wait_for_all();
  Outputs found;
  for (size_t pass = 0; pass < model_.passes.size(); ++pass) {
    run_pass(pass);
    const bool last = pass + 1 == model_.passes.size();
    if (!last && !model_.passes[pass].hasty) continue;
    found = gradients();
    if (const auto wrong = reference_.difference(pass + 1, found)) throw WrongResult(*wrong);
  }
  wait_for_all();
  for (const Unchecked& output : unchecked_)
    expect_output(output.node, output.number, output.found.cpu());
  return found;
}

void Attempt::refer_to_leaves() {
  for (size_t i = 0; i < model_.nodes.size(); ++i)
    if (is_leaf(model_.nodes[i]))
      held_[i].there =
          parts_[model_.nodes[i].worker].remote(&Part::run, static_cast<int64_t>(i), Arguments{});
}

void Attempt::run_node(size_t index) {
  const Node& node = model_.nodes[index];
  Held& held = held_[index];
  const RRef<Part>& part = parts_[node.worker];
  const auto number = static_cast<int64_t>(index);
  if (node.way == Way::here) {
    Outputs inputs;
    for (const Input& input : node.inputs)
      inputs.push_back(tensors_of(input.node).at(input.output));
    const Placed here = placed(worker_, node, inputs);
    held.here = evaluate(model_, here.node, here.inputs, /*owned=*/false);
    return expect_outputs(index, *held.here);
  }
  const Arguments arguments = arguments_of(node);
  if (node.via.empty()) {
    if (node.way == Way::remote)
      held.there = part.remote(&Part::run, number, arguments);
    else
      held.coming = part.rpc_async(&Part::run, number, arguments);
  } else {
    const WorkerId first{node.via.front()};
    const std::vector<int64_t> rest(node.via.begin() + 1, node.via.end());
    if (node.way == Way::remote)
      held.there = worker_.remote(first, &relay, rest, part, number, arguments);
    else
      held.coming = worker_.rpc_async(first, &relay, rest, part, number, arguments);
  }
  if (node.way == Way::sync) static_cast<void>(tensors_of(index));
}

void Attempt::run_loss(size_t index) {
  const Node& node = model_.nodes[index];
  Held& held = held_[index];
  const auto number = static_cast<int64_t>(index);
  if (node.way == Way::here) {
    Outputs inputs;
    for (const Input& input : node.inputs)
      inputs.push_back(tensors_of(input.node).at(input.output));
    const Placed here = placed(worker_, node, inputs);
    held.loss_here = evaluate(model_, here.node, here.inputs, /*owned=*/false).front();
  } else if (node.way == Way::remote) {
    held.loss_there = parts_[node.worker].remote(&Part::loss, number, arguments_of(node));
    return;
  } else {
    held.loss_here = parts_[node.worker].rpc_sync(&Part::loss, number, arguments_of(node));
  }
  expect_outputs(index, {*held.loss_here});
}

Arguments Attempt::arguments_of(const Node& node) {
  Arguments arguments;
  for (const Input& input : node.inputs)
    if (input.by_reference)
      arguments.references.push_back(reference_of(input.node));
    else
      arguments.values.push_back(tensors_of(input.node).at(input.output));
  return arguments;
}

// A leaf is fetched for every use: passes over graphs that have only leaves in common have no
// message in common then.
Outputs Attempt::tensors_of(size_t index) {
  Held& held = held_[index];
  if (held.here) return *held.here;
  Outputs found = held.coming ? held.coming->wait() : held.there.to_here();
  expect_outputs(index, found);
  if (!is_leaf(model_.nodes[index])) held.here = found;
  return found;
}

RRef<Outputs> Attempt::reference_of(size_t index) {
  Held& held = held_[index];
  if (!held.there.valid()) held.there = worker_.rref(tensors_of(index));
  return held.there;
}

at::Tensor Attempt::loss_of(size_t index) {
  Held& held = held_[index];
  if (!held.loss_here) {
    held.loss_here = held.loss_there.to_here();
    expect_outputs(index, {*held.loss_here});
  }
  return *held.loss_here;
}

RRef<at::Tensor> Attempt::loss_reference_of(size_t index) {
  Held& held = held_[index];
  if (!held.loss_there.valid()) held.loss_there = worker_.rref(*held.loss_here);
  return held.loss_there;
}

void Attempt::wait_for_all() {
  for (const Held& held : held_) {
    if (held.coming) static_cast<void>(held.coming->wait());
    if (held.there.valid()) held.there.created().wait();
    if (held.loss_there.valid()) held.loss_there.created().wait();
  }
}

void Attempt::expect_outputs(size_t index, const Outputs& found) {
  for (size_t i = 0; i < reference_.outputs(index).size(); ++i)
    if (found.at(i).is_cpu())
      expect_output(index, i, found[i]);
    else
      unchecked_.push_back({index, i, found[i].detach().clone()});
}

void Attempt::expect_output(size_t index, size_t output, const at::Tensor& found) const {
  const at::Tensor& expected = reference_.outputs(index)[output];
  if (!same_bits(found, expected))
    throw WrongResult("output " + std::to_string(output) + " of " + text_of(model_, index) +
                      " is " + numbers_of(found) + ", not " + numbers_of(expected));
}

void Attempt::run_pass(size_t index) {
  const Pass& pass = model_.passes[index];
  BackwardOptions options = options_of(model_, pass);
  if (pass.hasty) {
    storm::Dice dice(Seed{model_.nodes.back().word}, index);
    options.deadline = std::chrono::microseconds(1 + dice.draw(uint64_t{1} << dice.draw(14)));
  }
  bool may_be_late = pass.hasty;
  for (int failed = 0;; ++failed) {
    try {
      return start_pass(index, options);
    } catch (const RpcError& error) {
      // Over a graph that is not retained there can be one pass. A call that fails may have run,
      // and the pass in it have succeeded.
      const bool again = pass.retain_graph && pass.start != Start::served && failed < 2;
      if (!is_loss(error.kind()) || !again) throw;
      if (!may_be_late || error.kind() != ErrorKind::timeout) on_failed_pass_(error);
    }
    options.deadline = Timeout::never();
    may_be_late = false;
  }
}

void Attempt::start_pass(size_t index, const BackwardOptions& options) {
  const Pass& pass = model_.passes[index];
  if (pass.losses.empty()) return run_penalty(options);
  std::vector<at::Tensor> here;
  std::vector<RRef<at::Tensor>> there;
  for (const size_t loss : pass.losses)
    if (pass.start == Start::here)
      here.push_back(loss_of(loss));
    else
      there.push_back(loss_reference_of(loss));
  switch (pass.start) {
    case Start::here:
      return context_.backward(here, options);
    case Start::at_owner:
      return there.front().backward(context_, options);
    case Start::of_several:
      return context_.backward_at(there, options);
    case Start::served:
      parts_[pass.worker].rpc_sync(&Part::start, static_cast<int64_t>(index), there);
  }
}

void Attempt::run_penalty(const BackwardOptions& options) {
  std::vector<at::Tensor> penalties;
  for (const RRef<Part>& part : parts_) {
    const at::Tensor penalty = part.rpc_sync(&Part::penalty);
    if (penalty.defined()) penalties.push_back(penalty);
  }
  if (!penalties.empty()) context_.backward(penalties, options);
}

// At once from all: none of them may have to wait for its own.
Outputs Attempt::gradients() {
  Outputs found;
  std::vector<Future<Outputs>> asked;
  for (const RRef<Part>& part : parts_) asked.push_back(part.rpc_async(&Part::gradients));
  std::vector<Outputs> of_workers;
  for (const Future<Outputs>& future : asked) {
    of_workers.push_back(future.wait());
    for (at::Tensor& gradient : of_workers.back())
      if (gradient.defined()) gradient = gradient.cpu();
  }
  std::vector<size_t> taken(parts_.size());
  for (const Node& node : model_.nodes)
    if (is_leaf(node)) found.push_back(of_workers[node.worker].at(taken[node.worker]++));
  return found;
}

}  // namespace rehearsal::random_model
