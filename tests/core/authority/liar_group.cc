#include "tests/core/authority/liar_group.h"

#include <ATen/Functions.h>

#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "core/api/autograd_context.h"
#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/fibers/thread_state.h"
#include "core/functions/stream_writer.h"
#include "core/values/sent_tensor.h"
#include "core/wire/protobuf_codec.h"
#include "net_fake/witness.h"
#include "sim/world/cluster_parts.h"

namespace rehearsal::liar {
namespace {

class Counter {
 public:
  explicit Counter(int64_t start) : value_(start) {}
  int64_t add(int64_t more) { return value_ += more; }
  int64_t plus(CallContext& call, const RRef<Counter>& other) {
    return value_ + call.rpc_sync(other, &Counter::add, 0);
  }

 private:
  int64_t value_;
};

at::Tensor square(const at::Tensor& tensor) { return at::mul(tensor, tensor); }
int64_t twice(int64_t number) { return 2 * number; }
void count_up(StreamWriter<int64_t>& out, int64_t end) {
  for (int64_t i = 0; i < end; ++i) out.write(i);
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("twice", &twice);
  registry.function("square", &square);
  registry.function("count_up", &count_up);
  registry.type<Counter>("Counter")
      .constructor<int64_t>()
      .method("add", &Counter::add)
      .method("plus", &Counter::plus);
  return registry;
}

void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(std::string("a false result: ") + what);
}

// Some of all that workers do with each other. `third` is given a reference, if there is one.
void do_all_with(Worker& worker, const std::string& peer, const std::string& third) {
  expect(worker.rpc_sync(peer, &twice, 21) == 42, "a call");
  const RRef<Counter> counter = worker.remote<Counter>(peer, int64_t{1});
  expect(worker.rpc_sync(counter, &Counter::add, 2) == 3, "a method");
  if (!third.empty()) {
    const RRef<Counter> other = worker.remote<Counter>(third, int64_t{5});
    expect(worker.rpc_sync(other, &Counter::plus, counter) == 8, "a reference");
  }
  int64_t sum = 0;
  for (const int64_t number : worker.rpc_stream(peer, &count_up, 6)) sum += number;
  expect(sum == 15, "a stream");
  const AutogradContext context = worker.autograd_context();
  const at::Tensor leaf = at::full({1}, 3.0).requires_grad_();
  context.backward({context.rpc_sync(peer, &square, leaf).sum()});
  expect(context.get_gradients().find(leaf).item<double>() == 6.0, "a gradient");
}

// With a mad worker anything may fail.
void try_all_with(Worker& worker, const std::string& peer, const std::string& third) {
  try {
    do_all_with(worker, peer, third);
  } catch (const std::exception&) {
  }
}

class Listener final : public net_fake::Witness {
 public:
  Listener(WorkerId mad, const uint64_t& step) : mad_(mad), step_(step) {}
  void on_sent(sim::LifeId from, sim::LifeId to, const Frame& frame, uint64_t) override {
    if (from.worker == mad_ && frame.body != nullptr)
      sent.push_back({to.worker, step_, frame.body});
  }
  void on_arrived(sim::LifeId, sim::LifeId, const Frame&) override {}
  void on_broken(sim::LifeId, sim::LifeId, std::string_view) override {}
  void on_partition(const net_fake::Partition&) override {}
  void on_healed() override {}

  std::vector<Sent> sent;

 private:
  const WorkerId mad_;
  const uint64_t& step_;
};

// Why the honest workers have fenced somebody. One that has ended well is no longer kept: whoever
// ends the group may let one go and hold the other.
class Fences final : public Trace {
 public:
  explicit Fences(WorkerId mad) : mad_(mad) {}
  void set_has_ended_well(std::function<bool(WorkerId)> has) { has_ended_well_ = std::move(has); }
  void on_event(const Event& event) override {
    if (event.kind != EventKind::peer_fenced || event.worker == mad_) return;
    const std::string text(event.text);
    const bool has_gone = text.find("has left the group") != std::string::npos ||
                          text.find("has ended: ") != std::string::npos;  // when all was done
    if (event.peer == mad_)
      of_mad.push_back(text);
    else if (!has_gone && !has_ended_well_(event.peer))
      of_others.push_back(text);
  }

  std::vector<std::string> of_mad;
  std::vector<std::string> of_others;

 private:
  const WorkerId mad_;
  std::function<bool(WorkerId)> has_ended_well_;
};

}  // namespace

const std::vector<std::string> kNames = {"a", "b", "c"};

Program program_of(const Group& group) {
  Program program(functions());
  const std::string mad = kNames[group.mad.value];
  for (const std::string& name : kNames) {
    std::vector<std::string> others;
    for (const std::string& other : kNames)
      if (other != name && (name == mad || other != mad)) others.push_back(other);
    program.worker(name, [name, mad, others](Worker& worker) {
      for (const std::string& other : others) worker.wait_for_worker(other);
      if (name == mad) {
        try_all_with(worker, others[0], others[1]);
        try_all_with(worker, others[1], others[0]);
        return;
      }
      do_all_with(worker, others[0], "");
      try_all_with(worker, mad, others[0]);
      try_all_with(worker, others[0], mad);
      worker.barrier({name, others[0]});
      do_all_with(worker, others[0], "");
      worker.barrier({name, others[0]});
    });
  }
  return group.dynamic ? std::move(program.dynamic()) : std::move(program);
}

Message message_of(const FrameBody& body) {
  Message message = make_protobuf_codec()->decode(body).value();
  const auto make_ready = [](Payload& payload) {
    DeviceCopies none;
    payload.sent = sent_tensors(payload.tensors, payload.places(), none);
  };
  if (auto* call = std::get_if<Call>(&message.content)) make_ready(call->arguments);
  if (auto* response = std::get_if<Response>(&message.content)) make_ready(response->value);
  if (auto* item = std::get_if<Item>(&message.content)) make_ready(item->value);
  if (auto* end = std::get_if<End>(&message.content)) make_ready(end->value);
  if (auto* gradients = std::get_if<Gradients>(&message.content)) make_ready(gradients->gradients);
  return message;
}

Outcome run(const Group& group, const Program& program, fibers::StackPool& stacks,
            const std::vector<Lie>& lies) {
  const fibers::DefaultThreadState state;
  Outcome outcome;
  Listener listener(group.mad, outcome.steps);
  Fences fences(group.mad);
  sim::ClusterParts parts(
      Seed{1}, program,
      {.faults = sim::FaultLevel::none, .oracles = false, .traces = {&fences}, .stacks = &stacks});
  fences.set_has_ended_well([&parts](WorkerId worker) {
    const std::optional<Status>& result = parts.life(worker).result();
    return result && result->ok();
  });
  if (lies.empty()) parts.network().set_witness(&listener);
  parts.begin();
  auto next = lies.begin();
  while (parts.step(Instant{} + std::chrono::seconds(10))) {
    ++outcome.steps;
    for (; next != lies.end() && next->step <= outcome.steps; ++next) {
      sim::Life& mad = parts.life(group.mad);
      const Lie& lie = *next;
      if (!mad.over()) mad.runtime().post([&mad, &lie] { mad.node().say(lie.to, lie.message); });
    }
  }
  // A mad worker that nobody has given up may keep the others from leaving.
  parts.crash({.worker = group.mad});
  while (parts.step()) {
  }
  for (uint32_t id = 0; id < kWorkers; ++id)
    outcome.results.push_back(parts.life(WorkerId{id}).result());
  outcome.sent = std::move(listener.sent);
  outcome.fences_of_mad = std::move(fences.of_mad);
  outcome.fences_of_others = std::move(fences.of_others);
  return outcome;
}

}  // namespace rehearsal::liar
