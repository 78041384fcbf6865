// Goal: what runs at a worker reaches its state, its names and its tables. Method: one worker
// alone, that calls itself.
#include "core/api/worker_access.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/api/call_context.h"
#include "tests/core/node/node_fixture.h"

namespace rehearsal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Lines = std::vector<std::string>;

// Says when it is made and when it ends.
struct Noted {
  Noted(Worker& worker, std::shared_ptr<Lines> to, std::string as)
      : lines(std::move(to)), name(std::move(as)) {
    lines->push_back(name + " made at " + worker.name());
  }
  ~Noted() { lines->push_back(name + " ends"); }
  Noted(const Noted&) = delete;
  const std::shared_ptr<Lines> lines;
  const std::string name;
};

struct Table {
  explicit Table(int64_t first) : sum(first) {}
  int64_t sum;
};

// Of the state `Table`, which it finds through its call.
int64_t add_to_table(CallContext& context, int64_t number) {
  return context.with_state<Table>([&](Table& table) { return table.sum += number; });
}
int64_t table_sum(CallContext& context) { return context.state<Table>().sum; }
// A method that waits in the state's monitor while its value's monitor is given up.
struct Mover {
  int64_t move(CallContext& context) {
    return context.with_state<Table>([&](Table& table) {
      context.sleep(milliseconds(3));
      return ++table.sum;
    });
  }
};
int64_t stateless(CallContext& context) { return context.state<Noted>().name.size(); }

std::string told_by_call(CallContext& context) {
  const DebugInfo info = context.debug_info();
  return context.name() + " " + std::to_string(context.workers().size()) + " " +
         std::to_string(context.members().size()) + " " + info.at("rpc.executions");
}

FunctionRegistry access_functions() {
  FunctionRegistry registry = node_functions();
  registry.function("add_to_table", &add_to_table)
      .function("table_sum", &table_sum)
      .runs_inline()
      .function("stateless", &stateless)
      .function("told_by_call", &told_by_call);
  registry.type<Mover>("Mover").constructor<>().method("move", &Mover::move);
  return registry;
}

class WorkerAccessTest : public NodeTest {
 protected:
  static Error error_of(const std::function<void()>& body) {
    try {
      body();
    } catch (const RpcError& thrown) {
      return thrown.error();
    }
    ADD_FAILURE() << "no error was thrown";
    return {};
  }
  void run(Program::Main main) {
    Program alone(access_functions());
    alone.worker("solo", std::move(main)).state<Table>(10);
    begin(std::move(alone));
    const Status status = node->run_main();
    EXPECT_TRUE(status.ok()) << to_string(status.error());
    expect_empty();
    EXPECT_EQ(node->census().published, 0u);
  }
};

// ---- states -----------------------------------------------------------------

TEST_F(WorkerAccessTest, AFunctionAndTheMainHaveOneState) {
  run([](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("solo", &add_to_table, 5), 15);
    EXPECT_EQ(worker.with_state<Table>([](Table& table) { return table.sum *= 2; }), 30);
    EXPECT_EQ(worker.rpc_sync("solo", &table_sum), 30);
    EXPECT_EQ(&worker.state<Table>(), &worker.state<Table>());
  });
}

TEST_F(WorkerAccessTest, AMethodThatKeepsTheStateWhileItWaitsIsToldOf) {
  // Goal: whoever watches sees which wait keeps others out of what. Method: a method, in whose
  // value's monitor the body is called, and the main, which gives the state up while it waits.
  run([](Worker& worker) {
    const RRef<Mover> mover = worker.remote<Mover>("solo");
    EXPECT_EQ(mover.rpc_sync(&Mover::move), 11);
    worker.with_state<Table>([&](Table&) { worker.sleep(milliseconds(3)); });
  });
  std::vector<std::string> kept;
  for (const auto& seen : trace.all(EventKind::execution_parked))
    if (seen.event.number > 0)
      kept.push_back(seen.text + ": " + std::to_string(seen.event.number) + " " + seen.value);
  EXPECT_EQ(kept, std::vector<std::string>{"Mover.move: 1 the worker's state"});
}

TEST_F(WorkerAccessTest, AStateThatTheProgramDoesNotGiveIsAnErrorThatSaysHow) {
  run([](Worker& worker) {
    const Error here = error_of([&] { (void)worker.state<Lines>(); });
    EXPECT_EQ(here.kind, ErrorKind::bad_arguments);
    EXPECT_NE(here.text.find("worker 'solo' has no state of type std::vector"), std::string::npos);
    EXPECT_NE(here.text.find("program.worker(\"solo\", …).state<T>(…)"), std::string::npos);
    const Error there = error_of([&] { (void)worker.rpc_sync("solo", &stateless); });
    EXPECT_NE(there.text.find("has no state of type"), std::string::npos) << there.text;
  });
}

TEST_F(WorkerAccessTest, StatesAreMadeBeforeTheMainInOrderAndEndBackwardsBeforeItsNode) {
  const auto lines = std::make_shared<Lines>();
  Program alone(access_functions());
  alone.worker("solo", [lines](Worker& worker) {
    lines->push_back("main of " + worker.state<Noted>().name);
  });
  alone.state<Noted>(lines, std::string("first"));
  alone.state<std::unique_ptr<Noted>>([lines](Worker& worker) {
    return std::make_unique<Noted>(worker, lines, "after " + worker.state<Noted>().name);
  });
  begin(std::move(alone));
  EXPECT_TRUE(node->run_main().ok());
  EXPECT_EQ(*lines, (Lines{"first made at solo", "after first made at solo", "main of first",
                           "after first ends", "first ends"}));
  expect_empty();
}

TEST_F(WorkerAccessTest, WhatAStateHoldsIsNotLeft) {
  // Goal: references in a state are no leak: it ends before those that are left are reported.
  struct Holder {
    explicit Holder(Worker& worker) : held(worker.rref<int64_t>(4)) {}
    RRef<int64_t> held;
  };
  Program alone(access_functions());
  alone.worker("solo").state<Holder>();
  begin(std::move(alone));
  EXPECT_TRUE(node->run_main().ok());
  for (const auto& mark : trace.all(EventKind::mark))
    EXPECT_FALSE(mark.text.starts_with("released at shutdown")) << mark.text;
  expect_empty();
}

TEST_F(WorkerAccessTest, AStateThatCannotBeMadeIsWhyTheWorkerEnds) {
  bool ran = false;
  Program alone(access_functions());
  alone.worker("solo", [&ran](Worker&) { ran = true; }).state<Table>([](Worker&) -> Table {
    throw std::runtime_error("no table");
  });
  begin(std::move(alone));
  const Status status = node->run_main();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().text, "std::runtime_error: no table");
  EXPECT_EQ(status.error().function, "state");
  EXPECT_FALSE(ran);
  expect_empty();
}

TEST_F(WorkerAccessTest, AProgramGivesAWorkerOneStateOfAType) {
  Program none(node_functions());
  EXPECT_THROW(none.state<Table>(1), std::invalid_argument);
  Program many(node_functions());
  many.worker("first").worker("more", Count{2}).state<Table>(1).state<Lines>();
  EXPECT_THROW(many.state<Table>(2), std::invalid_argument);
  const size_t own = many.members().at(0).states.size();  // the library's
  EXPECT_EQ(many.members().at(1).states.size(), own + 2);
  EXPECT_EQ(many.members().at(2).states.size(), own + 2);
}

// ---- names ------------------------------------------------------------------

TEST_F(WorkerAccessTest, ANameHoldsItsReferenceUntilItIsTakenBack) {
  run([](Worker& worker) {
    worker.publish("four", worker.rref<int64_t>(4));
    EXPECT_EQ(worker.debug_info().at("rref.published"), "1");
    EXPECT_EQ(worker.debug_info().at("rref.owners"), "1");
    const std::string table = worker.debug_info().at("rref.table");
    EXPECT_NE(table.find("published as 'four': a long, "), std::string::npos) << table;
    EXPECT_EQ(worker.lookup<int64_t>("solo", "four").local_value(), 4);
    worker.unpublish("four");
    EXPECT_EQ(worker.debug_info().at("rref.owners"), "0");
    EXPECT_EQ(worker.debug_info().at("rref.published"), "0");
  });
}

TEST_F(WorkerAccessTest, ANameIsTakenOnceAndHoldsAReference) {
  run([](Worker& worker) {
    worker.publish("four", worker.rref<int64_t>(4));
    const Error taken = error_of([&] { worker.publish("four", worker.rref(std::string())); });
    EXPECT_EQ(taken.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(taken.text, "'four' is published here already, as a long: unpublish it first");
    EXPECT_EQ(error_of([&] { worker.unpublish("five"); }).text,
              "nothing is published here as 'five'");
    EXPECT_EQ(error_of([&] { worker.publish("five", RRef<int64_t>()); }).kind,
              ErrorKind::bad_arguments);
    EXPECT_EQ(error_of([&] { worker.publish("", worker.rref<int64_t>(4)); }).kind,
              ErrorKind::bad_arguments);
  });
}

TEST_F(WorkerAccessTest, ANameOfAnotherTypeSaysBoth) {
  run([](Worker& worker) {
    worker.publish("four", worker.rref<int64_t>(4));
    const Error other = error_of([&] { (void)worker.lookup<double>("solo", "four"); });
    EXPECT_EQ(other.kind, ErrorKind::bad_arguments);
    EXPECT_EQ(other.text, "'four' of worker 'solo' is a long, and was looked up as a double");
  });
}

TEST_F(WorkerAccessTest, ALookUpThatIsInVainSaysWhatIsMissingAndLeavesNothing) {
  run([](Worker& worker) {
    const Error late =
        error_of([&] { (void)worker.lookup<int64_t>("solo", "four", milliseconds(50)); });
    EXPECT_EQ(late.kind, ErrorKind::timeout);
    EXPECT_EQ(late.text,
              "worker 'solo' has published nothing as 'four' in time: no answer within "
              "50 ms");
    EXPECT_EQ(late.worker, "solo");
    EXPECT_EQ(worker.debug_info().at("rref.lookups"), "0");
    EXPECT_EQ(error_of([&] { (void)worker.lookup<int64_t>("none", "four"); }).kind,
              ErrorKind::bad_arguments);
  });
}

TEST_F(WorkerAccessTest, WhatIsStillPublishedAtTheEndIsReleasedAndNotReported) {
  run([](Worker& worker) { worker.publish("four", worker.rref<int64_t>(4)); });
  for (const auto& mark : trace.all(EventKind::mark))
    EXPECT_FALSE(mark.text.starts_with("released at shutdown")) << mark.text;
}

// ---- tables and times -------------------------------------------------------

TEST_F(WorkerAccessTest, AFunctionSeesTheTablesAndWorkersThatTheMainSees) {
  run([](Worker& worker) { EXPECT_EQ(worker.rpc_sync("solo", &told_by_call), "solo 1 1 1"); });
}

TEST_F(WorkerAccessTest, AnOwnerIsCountedFromTheStartAndAsSharedWhenOthersReferToIt) {
  run([](Worker& worker) {
    const RRef<int64_t> mine = worker.rref<int64_t>(4);
    EXPECT_EQ(worker.debug_info().at("rref.owners"), "1");
    EXPECT_EQ(worker.debug_info().at("rref.shared_owners"), "0");
  });
}

TEST_F(WorkerAccessTest, TheDefaultTimeoutChangesForWhatIsSentFromThenOn) {
  run([](Worker& worker) {
    EXPECT_EQ(worker.rpc_timeout(), seconds(60));
    const auto time_left = [&](Timeout timeout) {
      worker.set_default_timeout(timeout);
      return worker.rpc_timeout();
    };
    EXPECT_EQ(time_left(milliseconds(500)), milliseconds(500));
    EXPECT_EQ(worker.rpc_sync("solo", &doubled, 4), 8);
    EXPECT_EQ(time_left(Timeout()), milliseconds(500));
    EXPECT_EQ(time_left(Timeout::never()), Duration(0));
    EXPECT_EQ(worker.rpc_sync("solo", &doubled, 5), 10);
  });
  // By the calls' own account: the first is the one of half a second, the second has no limit.
  std::vector<uint64_t> limits;
  for (const auto& call : trace.all(EventKind::api_call)) limits.push_back(call.event.number);
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_EQ(limits[0], static_cast<uint64_t>(Duration(milliseconds(500)).count()));
  EXPECT_EQ(limits[1], 0u);
}

}  // namespace
}  // namespace rehearsal
