#include "core/node/node.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/base/mutants.h"
#include "core/node/hello.h"
#include "tests/core/node/node_fixture.h"

namespace rehearsal {
namespace {

// ---- programs ----

TEST(ProgramTest, NamesItsWorkersInTheOrderOfTheirDeclaration) {
  Program program{node_functions()};
  program.worker("ps", [](Worker&) {})
      .worker(
          "trainer", [](Worker&) {}, Count{2});
  EXPECT_EQ(program.names(), (std::vector<std::string>{"ps", "trainer0", "trainer1"}));
  EXPECT_TRUE(program.registry().position("doubled").ok());
}

TEST(ProgramTest, ANameIsTakenOnceAndNeverEmpty) {
  Program program{node_functions()};
  program.worker("a", [](Worker&) {}).worker("b1", [](Worker&) {});
  EXPECT_THROW(program.worker("a", [](Worker&) {}), std::invalid_argument);
  EXPECT_THROW(program.worker("", [](Worker&) {}), std::invalid_argument);
  EXPECT_THROW(program.worker(
                   "b", [](Worker&) {}, Count{2}),
               std::invalid_argument);
}

// ---- nodes ----

TEST_F(NodeTest, JoinsRunsItsMainAndLeaves) {
  int64_t sum = 0;
  begin([&](Worker& worker) {
    EXPECT_EQ(worker.name(), "solo");
    EXPECT_EQ(worker.workers().size(), 1u);
    EXPECT_EQ(worker.worker_info("solo").id, WorkerId{0});
    EXPECT_THROW((void)worker.worker_info("nobody"), RpcError);
    sum = worker.rpc_sync("solo", &doubled, 21);
    const Future<int64_t> future = worker.rpc_async(worker.info(), &doubled, 4);
    sum += worker.when_all<int64_t>({future}).wait().at(0);
  });
  const Status status = node->run_main();
  EXPECT_TRUE(status.ok()) << status.error().text;
  EXPECT_EQ(sum, 50);
  EXPECT_TRUE(node->ended());
  EXPECT_TRUE(network.end(0).stopped());
  EXPECT_EQ(trace.count(EventKind::node_stopped), 1u);
  expect_empty();
}

TEST_F(NodeTest, ReferencesThatAreLeftAreReleasedAndReported) {
  std::optional<RRef<int64_t>> kept;
  begin([&](Worker& worker) { kept = worker.rref<int64_t>(5); });
  EXPECT_TRUE(node->run_main().ok());
  const auto told = trace.all(EventKind::reference_leaked);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].text,
            "'solo' holds a reference to a value of its own, made by rref in 'solo': " +
                to_string(*kept->name()));
  expect_empty();
  node.reset();
  EXPECT_THROW((void)kept->local_value(), RpcError);
}

TEST_F(NodeTest, OfManyReferencesThatAreLeftTenAreToldOneByOne) {
  std::vector<RRef<int64_t>> kept;
  begin([&](Worker& worker) {
    for (int64_t i = 0; i < 30; ++i) kept.push_back(worker.rref<int64_t>(i));
  });
  EXPECT_TRUE(node->run_main().ok());
  const auto told = trace.all(EventKind::reference_leaked);
  ASSERT_EQ(told.size(), 11u);
  EXPECT_EQ(told[10].text, "20 more references or autograd contexts");
  expect_empty();
}

TEST_F(NodeTest, AnExceptionOfTheMainIsTheResult) {
  begin([](Worker&) { throw std::runtime_error("no data"); });
  const Status status = node->run_main();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::remote_exception);
  EXPECT_EQ(status.error().worker, "solo");
  EXPECT_EQ(status.error().function, "main");
  EXPECT_EQ(status.error().text, "std::runtime_error: no data");
  EXPECT_TRUE(node->ended());
  expect_empty();
}

TEST_F(NodeTest, AnAbortFailsWhatTheMainWaitsFor) {
  MaybeError seen;
  begin([&](Worker& worker) {
    const Promise<int64_t> promise = worker.promise<int64_t>();
    runtime->call_at(world.now(), [&] { node->abort({.text = "enough"}); });
    const Result<int64_t> result = promise.future().result();
    seen = result.error();
    EXPECT_TRUE(node->waits().stacks.empty());
  });
  (void)node->run_main();
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->kind, ErrorKind::node_stopped);
  EXPECT_NE(seen->text.find("enough"), std::string::npos);
  EXPECT_TRUE(node->ended());
  runtime->post([&] { node->abort({.text = "again"}); });
  expect_empty();
}

TEST_F(NodeTest, AKilledMainUnwindsAndNothingIsToldToAnybody) {
  bool went_on = false;
  begin([&](Worker& worker) {
    const Promise<int64_t> promise = worker.promise<int64_t>();
    runtime->call_at(world.now(), [&] {
      node->kill();
      runtime->kill();
    });
    (void)promise.future().result();
    went_on = true;
  });
  EXPECT_THROW((void)node->run_main(), NodeKilled);
  EXPECT_FALSE(went_on);
  EXPECT_TRUE(node->ended());
  EXPECT_EQ(trace.count(EventKind::node_stopped), 0u);
}

TEST_F(NodeTest, WhileItWaitsItSaysForWhat) {
  WaitViews waits;
  begin([&](Worker& worker) {
    const Promise<int64_t> promise = worker.promise<int64_t>();
    runtime->call_at(world.now(), [&] {
      waits = node->waits();
      promise.complete(1);
    });
    (void)promise.future().wait();
  });
  EXPECT_TRUE(node->run_main().ok());
  ASSERT_EQ(waits.stacks.size(), 1u);
  EXPECT_EQ(waits.stacks[0].label, "solo");
  EXPECT_EQ(waits.stacks[0].what, "a future");
  EXPECT_EQ(waits.stacks[0].id, CausalId{});
  EXPECT_TRUE(waits.calls.empty());
  EXPECT_EQ(waits.others, "");
}

TEST_F(NodeTest, ASecondLifeInheritsNothing) {
  int runs = 0;
  begin([&](Worker& worker) {
    ++runs;
    EXPECT_EQ(worker.rpc_sync("solo", &doubled, 1), 2);
  });
  EXPECT_TRUE(node->run_main().ok());
  const CausalId first = trace.all(EventKind::api_call).at(0).event.id;
  node.reset();
  trace.clear();
  make({}, 78);
  EXPECT_TRUE(node->run_main().ok());
  EXPECT_EQ(runs, 2);
  // The same place in the program, in another life.
  const CausalId second = trace.all(EventKind::api_call).at(0).event.id;
  EXPECT_EQ(first.place(), second.place());
  EXPECT_NE(first.incarnation, second.incarnation);
}

TEST_F(NodeTest, ItsHelloCarriesItsNameAndEveryFunction) {
  begin([](Worker&) {});
  const Hello hello = node->hello();
  EXPECT_EQ(hello.worker, WorkerId{0});
  EXPECT_EQ(hello.incarnation, incarnation_of({0}, 77));
  const Result<Greeting> greeting = greeting_from_text(hello.greeting);
  ASSERT_TRUE(greeting.ok());
  EXPECT_EQ(greeting.value().name, "solo");
  EXPECT_NE(greeting.value().functions.find("doubled (int64,) -> int64"), std::string::npos);
  EXPECT_TRUE(node->run_main().ok());
}

TEST_F(NodeTest, AnUnknownMutantIsRefusedAndInAProductEach) {
  if (!kHasMutants) {
    EXPECT_THROW(begin([](Worker&) {}, {"no_fencing"}), std::invalid_argument);
  }
  EXPECT_THROW(begin([](Worker&) {}, {"no_such_rule"}), std::invalid_argument);
}

// A node of a program of two, which is greeted by hand.
class GreetedNodeTest : public NodeTest {
 protected:
  void SetUp() override {
    program.emplace(node_functions());
    program->worker("solo", [](Worker&) {}).worker("other", [](Worker&) {});
    runtime = std::make_shared<doubles::TestRuntime>(world);
    node = std::make_unique<Node>(NodeOptions{.id = {0},
                                              .incarnation = incarnation_of({0}, 77),
                                              .seed = {1},
                                              .names = program->names()},
                                  *program,
                                  Node::Environment{.runtime = runtime,
                                                    .executions = runtime.get(),
                                                    .transport = &two_.end(0),
                                                    .trace = &trace});
    greeting_ = greeting_from_text(node->hello().greeting).value();
    greeting_.name = "other";
  }
  void TearDown() override {
    runtime->post([&] { node->abort({.text = "done"}); });
    node.reset();
  }
  void greet(Incarnation incarnation) {
    runtime->post([&] { node->sink().on_peer_up({{1}, incarnation, to_text(greeting_)}); });
  }

  Greeting greeting_;

 private:
  doubles::ScriptedNetwork two_{2};
};

TEST_F(GreetedNodeTest, APeerWithOtherArithmeticIsMarked) {
  // A hello of this process with another thread count: it fits, and is marked.
  greeting_.threads += 1;
  greet(incarnation_of({1}, 88));
  EXPECT_EQ(trace.marked("a peer computes with another LibTorch, instruction set or thread count"),
            1u);
}

TEST_F(GreetedNodeTest, APeerThatSaysThatItIsALifeOfAnotherWorkerIsRefused) {
  // Goal: nobody makes ids in another's name. Method: the peer says a life of this worker, then one
  // of a third, then its own; the mark says whose greeting is believed.
  const char* const believed =
      "a peer computes with another LibTorch, instruction set or thread count";
  greeting_.threads += 1;
  greet(incarnation_of({0}, 77));
  greet(incarnation_of({2}, 88));
  EXPECT_EQ(trace.marked(believed), 0u);
  greet(incarnation_of({1}, 88));
  EXPECT_EQ(trace.marked(believed), 1u);
}

}  // namespace
}  // namespace rehearsal
