// Batches in whole clusters: a parameter server that updates once for all, a policy that decides
// for many, and what happens when one of them is lost.
#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/api/batcher.h"
#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kTrainers = 3;
constexpr int64_t kRounds = 4;
constexpr int64_t kObservers = 4;
constexpr int64_t kSteps = 6;

using Tensors = std::vector<torch::Tensor>;

// Values that depend on the seed only.
torch::Tensor numbers(at::IntArrayRef sizes, int64_t seed) {
  const int64_t count = c10::multiply_integers(sizes);
  return torch::sin(torch::arange(seed, seed + count, torch::kFloat) * 12.9898F).reshape(sizes);
}

bool equal_bits(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.dtype() == b.dtype() &&
         std::memcmp(a.contiguous().const_data_ptr(), b.contiguous().const_data_ptr(),
                     a.nbytes()) == 0;
}

// ---- a batched parameter server ---------------------------------------------

Tensors initial_parameters() {
  return {numbers({4, 2}, 1).requires_grad_(), numbers({2}, 100).requires_grad_()};
}

Tensors copies_of(const Tensors& tensors) {
  Tensors copies;
  for (const torch::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

// The gradients of one trainer's share of a round, at these parameters.
Tensors gradients_of(const Tensors& values, int64_t trainer, int64_t round) {
  Tensors parameters;
  for (const torch::Tensor& value : values)
    parameters.push_back(value.detach().clone().requires_grad_());
  const torch::Tensor input = numbers({5, 4}, 1000 * trainer + 10 * round);
  const torch::Tensor output = torch::tanh(torch::addmm(parameters[1], input, parameters[0]));
  return torch::autograd::grad({(output - 0.5).pow(2).mean()}, parameters);
}

// One step of the optimizer with the mean of everybody's gradients, in the order given.
void step(torch::optim::SGD& optimizer, const Tensors& parameters,
          const std::vector<Tensors>& gradients) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    torch::Tensor sum = gradients.front()[i];
    for (size_t from = 1; from < gradients.size(); ++from) sum = sum + gradients[from][i];
    torch::Tensor parameter = parameters[i];
    parameter.mutable_grad() = sum / static_cast<double>(gradients.size());
  }
  optimizer.step();
}

struct Update {
  int64_t trainer = 0;
  Tensors gradients;
};

class ParameterServer {
 public:
  ParameterServer(CallContext& call, int64_t trainers)
      : parameters_(initial_parameters()),
        optimizer_(parameters_, torch::optim::SGDOptions(0.001).momentum(0.9)),
        batcher_(call, {.size = static_cast<uint64_t>(trainers), .delay = {}},
                 [this](std::vector<Update> round) { return update_all(std::move(round)); }) {}

  Tensors values() const { return copies_of(parameters_); }
  int64_t updates() const { return updates_; }
  // Answered when all have sent theirs: with the parameters after the step.
  Future<Tensors> update(int64_t trainer, const Tensors& gradients) {
    return batcher_.add({trainer, gradients});
  }

 private:
  // The order of the sum is that of the trainers: the bits do not depend on who came first.
  std::vector<Tensors> update_all(std::vector<Update> round) {
    std::sort(round.begin(), round.end(),
              [](const Update& a, const Update& b) { return a.trainer < b.trainer; });
    std::vector<Tensors> gradients;
    for (const Update& update : round) gradients.push_back(update.gradients);
    step(optimizer_, parameters_, gradients);
    ++updates_;
    return std::vector<Tensors>(round.size(), copies_of(parameters_));
  }

  Tensors parameters_;
  torch::optim::SGD optimizer_;
  int64_t updates_ = 0;
  Batcher<Update, Tensors> batcher_;
};

// The answers to the trainer, round by round.
std::vector<Tensors> train(CallContext& call, const RRef<ParameterServer>& server,
                           int64_t trainer) {
  std::vector<Tensors> answers = {call.rpc_sync(server, &ParameterServer::values)};
  for (int64_t round = 0; round < kRounds; ++round)
    answers.push_back(call.rpc_sync(server, &ParameterServer::update, trainer,
                                    gradients_of(answers.back(), trainer, round)));
  return answers;
}

std::vector<Tensors> train_alone() {
  const Tensors parameters = initial_parameters();
  torch::optim::SGD optimizer(parameters, torch::optim::SGDOptions(0.001).momentum(0.9));
  std::vector<Tensors> answers = {copies_of(parameters)};
  for (int64_t round = 0; round < kRounds; ++round) {
    std::vector<Tensors> gradients;
    for (int64_t trainer = 0; trainer < kTrainers; ++trainer)
      gradients.push_back(gradients_of(answers.back(), trainer, round));
    step(optimizer, parameters, gradients);
    answers.push_back(copies_of(parameters));
  }
  return answers;
}

void serve_parameters(Worker& worker) {
  const auto server = worker.remote<ParameterServer>("ps", kTrainers);
  std::vector<Future<std::vector<Tensors>>> trainers;
  for (int64_t i = 0; i < kTrainers; ++i)
    trainers.push_back(worker.rpc_async("trainer" + std::to_string(i), &train, server, i));
  const std::vector<Tensors> expected = train_alone();
  for (const auto& trainer : trainers) {
    const std::vector<Tensors> answers = trainer.wait();
    ASSERT_EQ(answers.size(), expected.size());
    for (size_t round = 0; round < expected.size(); ++round)
      for (size_t i = 0; i < expected[round].size(); ++i)
        EXPECT_TRUE(equal_bits(answers[round][i], expected[round][i]))
            << "round " << round << ", parameter " << i;
  }
  EXPECT_EQ(worker.rpc_sync(server, &ParameterServer::updates), kRounds);
}

Program parameter_program(const Program::Main& main) {
  FunctionRegistry registry;
  registry.function("train", &train);
  registry.type<ParameterServer>("ParameterServer")
      .constructor<CallContext&, int64_t>()
      .method("values", &ParameterServer::values)
      .method("update", &ParameterServer::update)
      .method("updates", &ParameterServer::updates);
  Program program(std::move(registry));
  program.worker("ps", main).worker("trainer", Count{kTrainers});
  return program;
}

TEST(Batching, AParameterServerUpdatesOnceForAllAndAnswersAllAlike) {
  // Goal: rounds of everybody. Method: three trainers, four rounds, on networks that do what
  // networks do; all bits are those of one process that averages the gradients.
  const Program program = parameter_program(serve_parameters);
  EXPECT_TRUE(sim::hunt({.seeds = 100, .cluster = {.faults = sim::FaultLevel::mild}},
                        [&](Seed seed, const sim::ClusterOptions& options) {
                          sim::Cluster(seed, program, options).run();
                        }));
}

TEST(Batching, WhoeverWaitsForALostTrainerHearsOfItByItsTimeOut) {
  // Goal: a round that is never full ends for those who wait. Method: one trainer is lost before
  // it sends anything; the calls of the others have a time limit.
  const Program program = parameter_program([](Worker& worker) {
    const auto server = worker.remote<ParameterServer>("ps", kTrainers);
    const Calls hurried = worker.with_timeout(seconds(10));
    std::vector<Future<std::vector<Tensors>>> trainers;
    for (int64_t i = 0; i < 2; ++i)
      trainers.push_back(hurried.rpc_async("trainer" + std::to_string(i), &train, server, i));
    for (const auto& trainer : trainers)
      EXPECT_EQ(trainer.result().error().kind, ErrorKind::timeout);
    EXPECT_EQ(worker.rpc_sync(server, &ParameterServer::updates), 0);
  });
  sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
}

// ---- a batched policy -------------------------------------------------------

// Whole numbers: a row of a product has the same bits alone and among others.
torch::Tensor policy_weights() { return torch::tensor({{1.0F, -2.0F}, {3.0F, 4.0F}}); }
torch::Tensor state_of(int64_t observer, int64_t step) {
  return torch::tensor(
      {static_cast<float>((observer * 7 + step * 3) % 5), static_cast<float>(step % 3 - observer)});
}
int64_t action_of(const torch::Tensor& scores) { return scores.argmax().item<int64_t>(); }

class Policy {
 public:
  Policy(CallContext& call, int64_t size)
      : batcher_(call, {.size = static_cast<uint64_t>(size), .delay = milliseconds(5)},
                 [this](const Tensors& states) { return act(states); }) {}

  Future<int64_t> action(const torch::Tensor& state) { return batcher_.add(state); }
  std::vector<int64_t> sizes() const { return sizes_; }

 private:
  std::vector<int64_t> act(const Tensors& states) {
    const torch::NoGradGuard no_grad;
    sizes_.push_back(static_cast<int64_t>(states.size()));
    const torch::Tensor scores = torch::matmul(torch::stack(states), weights_);
    std::vector<int64_t> actions;
    for (int64_t i = 0; i < scores.size(0); ++i) actions.push_back(action_of(scores[i]));
    return actions;
  }

  const torch::Tensor weights_ = policy_weights();
  std::vector<int64_t> sizes_;
  Batcher<torch::Tensor, int64_t> batcher_;
};

std::vector<int64_t> observe(CallContext& call, const RRef<Policy>& policy, int64_t observer) {
  std::vector<int64_t> actions;
  for (int64_t step = 0; step < kSteps; ++step) {
    actions.push_back(call.rpc_sync(policy, &Policy::action, state_of(observer, step)));
    call.sleep(milliseconds((observer * 3 + step) % 8));
  }
  return actions;
}

void lead_observers(Worker& worker) {
  const auto policy = worker.remote<Policy>("agent", kObservers);
  std::vector<Future<std::vector<int64_t>>> observers;
  for (int64_t i = 0; i < kObservers; ++i)
    observers.push_back(worker.rpc_async("observer" + std::to_string(i), &observe, policy, i));
  for (int64_t i = 0; i < kObservers; ++i) {
    const std::vector<int64_t> actions = observers[static_cast<size_t>(i)].wait();
    for (int64_t step = 0; step < kSteps; ++step)
      EXPECT_EQ(actions[static_cast<size_t>(step)],
                action_of(torch::matmul(state_of(i, step), policy_weights())));
  }
  int64_t items = 0;
  for (const int64_t size : worker.rpc_sync(policy, &Policy::sizes)) {
    EXPECT_GE(size, 1);
    EXPECT_LE(size, kObservers);
    items += size;
  }
  EXPECT_EQ(items, kObservers * kSteps);
}

TEST(Batching, APolicyDecidesForManyAndAnswersEachItsOwn) {
  // Goal: each observer gets the action for its own state. Method: four observers at their own
  // pace, batches of up to four or what came within 5 ms; each action is computed alone as well.
  FunctionRegistry registry;
  registry.function("observe", &observe);
  registry.type<Policy>("Policy")
      .constructor<CallContext&, int64_t>()
      .method("action", &Policy::action)
      .method("sizes", &Policy::sizes);
  Program program(std::move(registry));
  program.worker("agent", lead_observers).worker("observer", Count{kObservers});
  EXPECT_TRUE(sim::hunt({.seeds = 100, .cluster = {.faults = sim::FaultLevel::mild}},
                        [&](Seed seed, const sim::ClusterOptions& options) {
                          sim::Cluster(seed, program, options).run();
                        }));
}

// ---- monitors ---------------------------------------------------------------

// How many of the class below there are; and how many there were at the end of the last batch.
int64_t ledgers = 0;
int64_t ledgers_after_batch = 0;

// Notes what happens when; its batches may park in the middle.
class Ledger {
 public:
  ~Ledger() { --ledgers; }
  Ledger(const Ledger&) = delete;
  explicit Ledger(CallContext& call)
      : batcher_(call, {.size = 2, .delay = {}},
                 [this, calls = Calls(call)](const std::vector<int64_t>& items) {
                   return add_up(*calls.caller(), items);
                 }) {
    ++ledgers;
  }

  Future<int64_t> add(int64_t item) {
    log_.emplace_back("add");
    const Future<int64_t> sum = batcher_.add(item);
    log_.emplace_back("added");
    return sum;
  }
  void note() { log_.emplace_back("note"); }
  void set_pause(int64_t pause) { pause_ = milliseconds(pause); }
  std::vector<std::string> log() const { return log_; }

 private:
  std::vector<int64_t> add_up(const Caller& caller, const std::vector<int64_t>& items) {
    log_.emplace_back("begins");
    if (pause_.count() > 0) caller.sleep(pause_);
    ledgers_after_batch = ledgers;
    log_.emplace_back("ends");
    for (const int64_t item : items) sum_ += item;
    return std::vector<int64_t>(items.size(), sum_);
  }

  Duration pause_{};
  int64_t sum_ = 0;
  std::vector<std::string> log_;
  Batcher<int64_t, int64_t> batcher_;
};

Program ledger_program(const Program::Main& main) {
  FunctionRegistry registry;
  registry.type<Ledger>("Ledger")
      .constructor<CallContext&>()
      .method("add", &Ledger::add)
      .method("note", &Ledger::note)
      .method("set_pause", &Ledger::set_pause)
      .method("log", &Ledger::log);
  Program program(std::move(registry));
  program.worker("clerk", main).worker("office");
  return program;
}

// Each beginning is followed by its own end.
bool is_in_pairs(const std::vector<std::string>& log) {
  for (size_t i = 0; i < log.size(); i += 2) {
    const std::string end = log[i] == "add" ? "added" : "ends";
    if ((log[i] != "add" && log[i] != "begins") || i + 1 == log.size() || log[i + 1] != end)
      return false;
  }
  return true;
}

TEST(Batching, ABodyIsInTheMonitorOfTheValueThatCollects) {
  // Goal: a body uses its value's members as a method does. Method: methods and batches in any
  // order that the seeds give; none begins inside another.
  const Program program = ledger_program([](Worker& worker) {
    const auto ledger = worker.remote<Ledger>("office");
    std::vector<Future<int64_t>> sums;
    for (int64_t item = 1; item <= 6; ++item) sums.push_back(ledger.rpc_async(&Ledger::add, item));
    std::vector<int64_t> values;
    for (const auto& sum : sums) values.push_back(sum.wait());
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), 21);
    const std::vector<std::string> log = ledger.rpc_sync(&Ledger::log);
    EXPECT_EQ(log.size(), 18u);
    EXPECT_TRUE(is_in_pairs(log));
  });
  EXPECT_TRUE(sim::hunt({.seeds = 100, .cluster = {.faults = sim::FaultLevel::mild}},
                        [&](Seed seed, const sim::ClusterOptions& options) {
                          sim::Cluster(seed, program, options).run();
                        }));
}

TEST(Batching, ABodyThatParksLetsMethodsInAndNoOtherBatch) {
  // Goal: the monitor is given up while a body parks; batches still come one by one. Method: two
  // batches are full at once, and a method comes while the first one sleeps.
  const Program program = ledger_program([](Worker& worker) {
    const auto ledger = worker.remote<Ledger>("office");
    ledger.rpc_sync(&Ledger::set_pause, 50);
    std::vector<Future<int64_t>> sums;
    for (int64_t item = 1; item <= 4; ++item) sums.push_back(ledger.rpc_async(&Ledger::add, item));
    worker.sleep(milliseconds(20));
    ledger.rpc_sync(&Ledger::note);
    for (const auto& sum : sums) static_cast<void>(sum.wait());
    const std::vector<std::string> log = ledger.rpc_sync(&Ledger::log);
    ASSERT_EQ(log.size(), 13u);
    const std::vector<std::string> expected = {"note", "ends", "begins", "ends"};
    EXPECT_EQ(std::vector<std::string>(log.end() - 4, log.end()), expected);
  });
  sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
}

TEST(Batching, AValueLivesWhileABatchOfItRuns) {
  // Goal: a body may use its value to its end. Method: everybody gives up, and the last reference
  // goes, while the body sleeps.
  const Program program = ledger_program([](Worker& worker) {
    auto ledger = worker.remote<Ledger>("office");
    ledger.rpc_sync(&Ledger::set_pause, 50);
    const Calls hurried = worker.with_timeout(milliseconds(10));
    const auto first = hurried.rpc_async(ledger, &Ledger::add, 1);
    const auto second = hurried.rpc_async(ledger, &Ledger::add, 2);
    EXPECT_EQ(first.result().error().kind, ErrorKind::timeout);
    EXPECT_EQ(second.result().error().kind, ErrorKind::timeout);
    ledger = {};
    worker.sleep(milliseconds(20));
    EXPECT_EQ(ledgers, 1);
    worker.sleep(milliseconds(100));
    EXPECT_EQ(ledgers_after_batch, 1);
    EXPECT_EQ(ledgers, 0);
  });
  sim::Cluster(Seed{1}, program, {.faults = sim::FaultLevel::none}).run();
}

// ---- crashes ----------------------------------------------------------------

TEST(Batching, BatchesEndInGoodOrderWhateverCrashes) {
  // Goal: every wait ends, and nothing is left. Method: as before, with a crash at any moment.
  const Program program = parameter_program([](Worker& worker) {
    const auto server = worker.remote<ParameterServer>("ps", kTrainers);
    const Calls hurried = worker.with_timeout(seconds(30));
    std::vector<Future<std::vector<Tensors>>> trainers;
    for (int64_t i = 0; i < kTrainers; ++i)
      trainers.push_back(hurried.rpc_async("trainer" + std::to_string(i), &train, server, i));
    for (const auto& trainer : trainers) static_cast<void>(trainer.wait());
  });
  EXPECT_TRUE(sim::hunt({.seeds = 100, .cluster = {.faults = sim::FaultLevel::mild, .crashes = 1}},
                        [&](Seed seed, const sim::ClusterOptions& options) {
                          sim::Cluster(seed, program, options).run();
                        }));
}

}  // namespace
}  // namespace rehearsal
