// Goal: the functions that a worker serves reach what its main can, without globals: its state,
// what others have published, its checkpoints, its tables. Method: programs as users write them,
// with nothing shared but what the library gives.
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::names_and_states_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Model {
  explicit Model(int64_t start) : weight(start) {}
  int64_t add(int64_t by) { return weight += by; }
  int64_t weight;
};

// A server's table, which functions change side by side.
struct Table {
  Table(Worker& worker, int64_t start) : owner(worker.name()), sum(start) {}
  const std::string owner;
  int64_t sum;
  int64_t calls = 0;
};

int64_t add_to_table(CallContext& context, int64_t number) {
  EXPECT_EQ(context.state<Table>().owner, context.name());
  return context.with_state<Table>([&](Table& table) {
    const int64_t before = table.sum;
    ++table.calls;
    table.sum = before + number;
    return table.sum;
  });
}

int64_t calls_of_table(CallContext& context) {
  return context.with_state<Table>([](Table& table) { return table.calls; });
}

// Finds the model by its name, from wherever it is served.
int64_t add_by_name(CallContext& context, const std::string& at, int64_t by) {
  return context.lookup<Model>(at, "model").rpc_sync(&Model::add, by);
}

// Publishes for its caller, later.
void publish_soon(CallContext& context, const std::string& name, int64_t start) {
  context.sleep(milliseconds(5));
  context.publish(name, context.rref(Model(start)));
}

std::string what_a_function_sees(CallContext& context) {
  context.wait_for_worker("worker0");
  const Instant before = context.now();
  context.sleep(milliseconds(2));
  EXPECT_GE(context.now() - before, milliseconds(2));
  const DebugInfo info = context.debug_info();
  EXPECT_EQ(info.at("rpc.waiting"), "0");
  std::string names;
  for (const WorkerInfo& worker : context.members()) names += worker.name + " ";
  return names + "at " + context.worker_info(context.caller_info().name).name;
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add_to_table", &add_to_table)
      .function("calls_of_table", &calls_of_table)
      .function("add_by_name", &add_by_name)
      .function("publish_soon", &publish_soon)
      .function("what_a_function_sees", &what_a_function_sees);
  registry.type<Model>("Model").constructor<int64_t>().method("add", &Model::add);
  return registry;
}

TEST(NamesAndStates, FunctionsShareTheStateOfTheirWorkerAndNoOther) {
  in_both_worlds([] {
    Program program(functions());
    program.worker(
        "worker",
        [](Worker& worker) {
          std::vector<Future<int64_t>> added;
          for (int64_t i = 1; i <= 10; ++i)
            added.push_back(worker.rpc_async("server0", &add_to_table, i));
          const std::vector<int64_t> sums = worker.when_all(added).wait();
          EXPECT_GE(*std::max_element(sums.begin(), sums.end()), 100 + 55);
          worker.barrier({"worker0", "worker1"});
          EXPECT_EQ(worker.rpc_sync("server0", &add_to_table, 0), 100 + 2 * 55);
          EXPECT_EQ(worker.rpc_sync("server1", &calls_of_table), 0);
        },
        Count{2});
    program.worker("server", Count{2}).state<Table>(int64_t{100});
    return program;
  });
}

TEST(NamesAndStates, AReferenceIsFoundByItsNameWheneverItIsPublished) {
  // Goal: mains and functions find it, before it is published and after. Method: a server publishes
  // when it likes; trainers and a function at a third worker look it up.
  in_both_worlds([] {
    Program program(functions());
    program.worker("ps", [](Worker& worker) {
      worker.sleep(milliseconds(3));
      worker.publish("model", worker.rref(Model(1000)));
      worker.barrier();
      EXPECT_EQ(worker.lookup<Model>("ps", "model").local_value().weight, 1000 + 3 * 10);
    });
    program.worker(
        "trainer",
        [](Worker& worker) {
          const RRef<Model> model = worker.lookup<Model>("ps", "model");
          EXPECT_EQ(model.owner_name(), "ps");
          static_cast<void>(model.rpc_sync(&Model::add, int64_t{10}));
          if (worker.name() == "trainer0")
            static_cast<void>(worker.rpc_sync("trainer1", &add_by_name, std::string("ps"), 10));
          worker.barrier();
        },
        Count{2});
    return program;
  });
}

TEST(NamesAndStates, WhatIsPublishedMayBeAnybodysAndTheNameAloneHoldsIt) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string here = worker.name();
    worker.publish("far", worker.remote<Model>(after(worker), int64_t{7}));
    worker.barrier();
    const std::string other = after(worker, 2);
    const RRef<Model> found = worker.lookup<Model>(other, "far");
    EXPECT_EQ(found.owner_name(), after(worker, 3));
    EXPECT_EQ(found.rpc_sync(&Model::add, int64_t{1}), 8);
    worker.barrier();
    worker.unpublish("far");
    worker.barrier();
    const Error gone =
        error_of([&] { (void)worker.lookup<Model>(other, "far", milliseconds(20)); });
    EXPECT_EQ(gone.kind, ErrorKind::timeout);
    EXPECT_TRUE(contains(gone.text, "worker '" + other + "' has published nothing as 'far'"))
        << gone.text;
  }));
}

TEST(NamesAndStates, AFunctionPublishesAtItsWorkerAndTheTypeIsChecked) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const std::string other = after(worker);
    const std::string name = "for " + worker.name();
    const auto published = worker.rpc_async(other, &publish_soon, name, int64_t{5});
    EXPECT_EQ(worker.lookup<Model>(other, name).rpc_sync(&Model::add, int64_t{1}), 6);
    published.wait();
    const Error wrong = error_of([&] { (void)worker.lookup<Table>(other, name); });
    EXPECT_EQ(wrong.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(wrong.worker, other);
    EXPECT_TRUE(contains(wrong.text, "'" + name + "' of worker '" + other + "' is a "))
        << wrong.text;
    EXPECT_TRUE(contains(wrong.text, "Model, and was looked up as a ")) << wrong.text;
    EXPECT_TRUE(wrong.text.ends_with("Table")) << wrong.text;
  }));
}

TEST(NamesAndStates, AFunctionSeesTheWorkersTheTablesAndTheTime) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("worker1", &what_a_function_sees), "worker0 worker1 at worker0");
  }));
}

// ---- tables and times -------------------------------------------------------

TEST(NamesAndStates, WaitingInAnothersBarrierIsNotExecutingThere) {
  // Goal: a worker at which the others wait runs nothing. Method: worker0 is the first of the
  // barrier, comes last, and looks at its own tables while the others wait.
  in_both_worlds(everywhere(
      functions(),
      [](Worker& worker) {
        if (worker.id().value == 0) {
          while (worker.debug_info().at("rpc.waiting") != "2") worker.sleep(milliseconds(1));
          EXPECT_EQ(worker.debug_info().at("rpc.executions"), "0");
        }
        worker.barrier();
      },
      3));
}

TEST(NamesAndStates, AnOwnerIsSharedFromWhenAnotherWorkerRefersToIt) {
  in_both_worlds(one_caller(functions(), [](Worker& worker) {
    const RRef<Model> mine = worker.rref(Model(1));
    EXPECT_EQ(worker.debug_info().at("rref.owners"), "1");
    EXPECT_EQ(worker.debug_info().at("rref.shared_owners"), "0");
    // Held by nothing but a function's argument, and then by nobody.
    worker.publish("model", mine);
    const auto added = worker.rpc_async("worker1", &add_by_name, std::string("worker0"), 4);
    EXPECT_EQ(added.wait(), 5);
    while (worker.debug_info().at("rref.shared_owners") != "0") worker.sleep(milliseconds(1));
    EXPECT_EQ(worker.debug_info().at("rref.owners"), "1");
  }));
}

int64_t slow(CallContext& context) {
  context.sleep(milliseconds(20));
  return 1;
}

TEST(NamesAndStates, TheDefaultTimeoutIsFixedWhenACallIsSent) {
  // Goal: a call keeps the time it was sent with. Method: two calls that end when they are let, one
  // before the default changes and one after.
  FunctionRegistry registry;
  register_gate(registry);
  in_both_worlds(one_caller(std::move(registry), [](Worker& worker) {
    const auto gate = worker.remote<Gate>("worker1");
    worker.set_default_timeout(milliseconds(40));
    const auto hurried = worker.rpc_async(gate, &Gate::pass);
    EXPECT_EQ(worker.rpc_timeout(), milliseconds(40));
    worker.set_default_timeout(seconds(60));
    const auto patient = worker.rpc_async(gate, &Gate::pass);
    EXPECT_EQ(kind_of([&] { hurried.wait(); }), ErrorKind::timeout);
    gate.rpc_sync(&Gate::open);
    EXPECT_EQ(patient.wait(), 1);
  }));
}

TEST(NamesAndStates, CallsOfSeveralTypesAreWaitedForTogether) {
  FunctionRegistry registry = functions();
  registry.function("slow", &slow);
  register_gate(registry);
  in_both_worlds(one_caller(std::move(registry), [](Worker& worker) {
    const auto gate = worker.remote<Gate>("worker1");
    const auto held = worker.rpc_async(gate, &Gate::pass);
    const auto [sees, one] = worker
                                 .when_all(worker.rpc_async("worker1", &what_a_function_sees),
                                           worker.rpc_async("worker1", &slow))
                                 .wait();
    EXPECT_EQ(sees, "worker0 worker1 at worker0");
    EXPECT_EQ(one, 1);
    // The one that fails gives the other up, which would wait for ever.
    const auto fails = worker.rpc_async<int64_t>("worker1", "aten::no_such_operator");
    const auto [waits, none] = worker.collect_all(IfOneFails::cancel_rest, held, fails).wait();
    EXPECT_EQ(waits.error().kind, ErrorKind::cancelled);
    EXPECT_FALSE(none.ok());
    EXPECT_EQ(worker.debug_info().at("rpc.pending_calls"), "0");
  }));
}

}  // namespace
}  // namespace rehearsal::reference::names_and_states_test
