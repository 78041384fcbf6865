// Goal: a cut is found again by names, is whole or not there, and what is wrong is said. Method:
// lives with other owners, lost disks, things of other names.
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "core/api/own_optimizer.h"
#include "core/api/recovery.h"
#include "core/checkpoint/checkpoint_orders.h"
#include "tests/core/checkpoint/small_training.h"
#include "tests/core/optim/own_optimizers.h"

namespace rehearsal::testing {
namespace {

using sim::Cluster;
using sim::ClusterOptions;
using sim::Restart;

constexpr Seed kSeed{11};

// Carries the plans out one after another. After each but the last a life ends as if another worker
// had been lost.
struct Lives {
  std::vector<TrainingPlan> plans;
  std::vector<TrainingEnd> ends = std::vector<TrainingEnd>(8);
  size_t done = 0;

  Program program() {
    Program program(training_registry());
    program
        .worker(
            "trainer",
            [this](Worker& worker) {
              if (done == plans.size()) return;
              training_main(plans[done], ends[done])(worker);
              if (++done < plans.size())
                throw RpcError({.kind = ErrorKind::peer_lost, .text = "a crash", .worker = "x"});
            })
        .recovering();
    for (const char* owner : {"first", "second", "third", "fourth"})
      program.worker(owner).recovering();
    return program;
  }
};

TrainingEnd undisturbed(int64_t steps) {
  TrainingEnd end;
  const Program program = training_program({.steps = steps}, end);
  Cluster(kSeed, program).run();
  return end;
}

TEST(Cuts, GoOnAtOtherOwners) {
  // Goal: parameters, buffers and optimizer state move to owners that had none. Method: a life
  // that goes on with layers elsewhere, and one in which both are at one owner and only loaded:
  // other numbers of calls would draw other random numbers.
  Lives lives{.plans = {{.steps = 4},
                        {.steps = 8, .first = "third", .second = "fourth"},
                        {.steps = 8, .first = "third", .second = "third"}}};
  const Program program = lives.program();
  Cluster cluster(kSeed, program);
  const auto& trainer = cluster.run().workers[0];
  ASSERT_FALSE(trainer.error) << trainer.error->text;
  ASSERT_GE(trainer.lives, 3u);
  EXPECT_EQ(lives.ends[1].resumed_at, 4);
  EXPECT_EQ(lives.ends[2].resumed_at, 8);
  EXPECT_EQ(difference(lives.ends[1], undisturbed(8)), "");
  EXPECT_EQ(difference(lives.ends[2], undisturbed(8)), "");
}

TEST(Cuts, OfWhichADiskIsLostAreNotPassedOver) {
  // Goal: not begun anew in silence. Method: an owner that comes back without its disk, with and
  // without leave to go on so.
  TrainingEnd reference;
  const Program calm = training_program({}, reference);
  const uint64_t late = Cluster(kSeed, calm).run().workers[2].decisions * 3 / 4;
  ClusterOptions options;
  options.restart = Restart::amnesia;
  options.crash_points = {{WorkerId{2}, late}};

  TrainingEnd end;
  const Program program = training_program({}, end);
  Cluster cluster(kSeed, program, options);
  const auto& report = cluster.try_run();
  ASSERT_TRUE(report.workers[0].error);
  EXPECT_EQ(report.workers[0].error->kind, ErrorKind::storage);
  EXPECT_NE(report.workers[0].error->text.find("was saved by all, and 'second' has lost its part"),
            std::string::npos)
      << report.workers[0].error->text;

  TrainingPlan accepting;
  accepting.checkpoint.accept_loss = true;
  TrainingEnd anew;
  const Program going_on = training_program(accepting, anew);
  Cluster(kSeed, going_on, options).run();
  EXPECT_EQ(anew.resumed_at, 0);
  EXPECT_EQ(difference(reference, anew), "");
}

// The error of a main that does this with the checkpoint of a layer at "first".
std::string error_of(const std::function<void(Worker&, const RemoteModule<NoisyLayer>&)>& body) {
  Program program(training_registry());
  std::string text;
  program.worker("trainer", [&](Worker& worker) {
    const RemoteModule<NoisyLayer> layer(worker, "first", 2, 2);
    try {
      body(worker, layer);
    } catch (const std::exception& error) {
      text = error.what();
    }
  });
  program.worker("first");
  Cluster(kSeed, program).run();
  return text;
}

void save_layer(Worker& worker, const RemoteModule<NoisyLayer>& layer, const std::string& name) {
  DistributedCheckpoint checkpoint(worker, "one");
  checkpoint.module(name, layer);
  ASSERT_EQ(checkpoint.resume(), 0);
  checkpoint.save(3);
  checkpoint.wait();
  EXPECT_EQ(checkpoint.committed(), 3);
}

TEST(Cuts, WithPiecesThatAreMissingOrLeftOverSayWhich) {
  const std::string missing = error_of([](Worker& worker, const auto& layer) {
    save_layer(worker, layer, "a");
    DistributedCheckpoint other(worker, "one");
    other.module("b", layer);
    static_cast<void>(other.resume());
  });
  EXPECT_NE(missing.find("step 3 of 'one' has no 'b.linear.weight'"), std::string::npos) << missing;

  const std::string left = error_of([](Worker& worker, const auto& layer) {
    save_layer(worker, layer, "a");
    DistributedCheckpoint other(worker, "one");
    static_cast<void>(other.resume());
  });
  EXPECT_NE(left.find("which nothing here takes"), std::string::npos) << left;

  const std::string allowed = error_of([](Worker& worker, const auto& layer) {
    save_layer(worker, layer, "a");
    DistributedCheckpoint other(worker, "one", {.allow_unused = true});
    EXPECT_EQ(other.resume(), 3);
  });
  EXPECT_EQ(allowed, "");

  const std::string shape = error_of([](Worker& worker, const auto& layer) {
    save_layer(worker, layer, "a");
    const RemoteModule<NoisyLayer> larger(worker, "first", 3, 2);
    DistributedCheckpoint other(worker, "one");
    other.module("a", larger);
    static_cast<void>(other.resume());
  });
  EXPECT_NE(shape.find("'a.linear.weight' has the shape [2, 3] here, and was saved as [2, 2]"),
            std::string::npos)
      << shape;
}

TEST(Cuts, WhoseFilesAreDamagedSayWhichInOneLine) {
  const std::string damaged = error_of([](Worker& worker, const auto&) {
    worker.save_checkpoint("one.head", 7);
    DistributedCheckpoint checkpoint(worker, "one");
    static_cast<void>(checkpoint.resume());
  });
  EXPECT_NE(damaged.find("'one.head' is no head of one: "), std::string::npos) << damaged;
  EXPECT_EQ(damaged.find('\n'), std::string::npos) << damaged;

  const std::string no_part = error_of([](Worker& worker, const auto&) {
    int64_t position = 7;
    DistributedCheckpoint checkpoint(worker, "one");
    checkpoint.value("position", position);
    ASSERT_EQ(checkpoint.resume(), 0);
    checkpoint.save(3);
    checkpoint.wait();
    worker.save_checkpoint("one.0", 7);
    DistributedCheckpoint again(worker, "one");
    again.value("position", position);
    static_cast<void>(again.resume());
  });
  EXPECT_NE(no_part.find("storage at 'trainer'"), std::string::npos) << no_part;
  EXPECT_NE(no_part.find("'one.0' is not the part of step 3 that its head says"), std::string::npos)
      << no_part;

  const std::string no_value = error_of([](Worker& worker, const auto&) {
    int64_t position = 7;
    DistributedCheckpoint checkpoint(worker, "one");
    checkpoint.value("position", position);
    ASSERT_EQ(checkpoint.resume(), 0);
    checkpoint.save(3);
    checkpoint.wait();
    std::string text;
    DistributedCheckpoint again(worker, "one");
    again.value("position", text);
    static_cast<void>(again.resume());
  });
  EXPECT_NE(no_value.find("'trainer:position' of 'one' cannot be taken: "), std::string::npos)
      << no_value;
  EXPECT_EQ(no_value.find('\n'), std::string::npos) << no_value;
}

TEST(Cuts, OfAnotherFormatAreNotTakenForTheirOwn) {
  // Goal: what a later program has written is refused, and says so. Method: raise the number.
  const std::string later = error_of([](Worker& worker, const auto&) {
    int64_t position = 7;
    DistributedCheckpoint checkpoint(worker, "one");
    checkpoint.value("position", position);
    ASSERT_EQ(checkpoint.resume(), 0);
    checkpoint.save(3);
    checkpoint.wait();
    const c10::IValue head = *worker.load_checkpoint("one.head");
    head.toGenericDict().insert_or_assign("format", int64_t{2});
    worker.save_checkpoint("two.head", head);
    DistributedCheckpoint again(worker, "two");
    again.value("position", position);
    static_cast<void>(again.resume());
  });
  EXPECT_NE(later.find("'two.head' is no head of one: it has format 2, and this program reads "
                       "format 1"),
            std::string::npos)
      << later;
}

TEST(Cuts, RefuseWhatCannotBeSaved) {
  const std::string unnamed = error_of([](Worker& worker, const auto& layer) {
    DistributedOptimizer optimizer(worker, layer.remote_parameters(),
                                   torch::optim::SGDOptions(0.1));
    DistributedCheckpoint checkpoint(worker, "one");
    checkpoint.optimizer("sgd", optimizer);
    static_cast<void>(checkpoint.resume());
  });
  EXPECT_NE(unnamed.find("a parameter of 'sgd' has no name"), std::string::npos) << unnamed;

  const std::string own = error_of([](Worker& worker, const auto&) {
    const auto here = std::make_shared<torch::nn::LinearImpl>(2, 2);
    own_optimizers::Adamax optimizer({torch::optim::OptimizerParamGroup(here->parameters())},
                                     own_optimizers::AdamaxOptions());
    DistributedCheckpoint checkpoint(worker, "one");
    checkpoint.module("here", here).optimizer("own", optimizer);
    static_cast<void>(checkpoint.resume());
  });
  EXPECT_NE(own.find("its class needs `save` and `load`"), std::string::npos) << own;

  bool saved_what_was_dropped = false;
  const std::string accumulated = error_of([&](Worker& worker, const auto& layer) {
    DistributedOptimizer optimizer(worker, layer.remote_parameters(),
                                   torch::optim::SGDOptions(0.1));
    DistributedCheckpoint checkpoint(worker, "one");
    checkpoint.module("layer", layer).optimizer("sgd", optimizer);
    static_cast<void>(checkpoint.resume());
    const auto accumulate = [&] {
      const AutogradContext context = worker.autograd_context();
      const auto recording = context.record();
      context.backward({layer.forward(torch::ones({2, 2})).sum()});
      optimizer.accumulate(context);
    };
    accumulate();
    accumulate();
    optimizer.clip_grad_value(1);
    optimizer.drop_accumulated();  // The owner is not told.
    checkpoint.save(1);
    saved_what_was_dropped = true;
    accumulate();  // No order follows that makes it count.
    checkpoint.save(2);
  });
  EXPECT_TRUE(saved_what_was_dropped);
  EXPECT_NE(accumulated.find("has accumulated gradients"), std::string::npos) << accumulated;

  EXPECT_NE(error_of([](Worker& worker, const auto& layer) {
              DistributedCheckpoint checkpoint(worker, "one");
              checkpoint.module("a", layer).module("a", layer);
            }).find("two things of checkpoint 'one' are called 'a'"),
            std::string::npos);
  EXPECT_NE(error_of([](Worker& worker, const auto&) {
              DistributedCheckpoint checkpoint(worker, "one");
              checkpoint.save(1);
            }).find("resume() comes before the first save"),
            std::string::npos);
}

TEST(Cuts, AreRememberedOfAsManyNamesAsAProgramHas) {
  // Goal: a desk ends somewhere, whatever a worker orders; and who only asks leaves nothing.
  // Method: more names than are remembered, asked for and then opened; a directory that is too
  // long.
  Program program(training_registry());
  program.worker("trainer", [](Worker& worker) {
    const auto name_of = [](const char* kind, size_t number) {
      return kind + std::to_string(number);
    };
    const auto open = [&worker](CheckpointOpening opening) {
      try {
        worker.rpc_sync("first", &checkpoint_orders::open, opening);
      } catch (const RpcError& thrown) {
        return thrown.error();
      }
      return Error{.kind = ErrorKind::protocol, .text = "opened"};
    };
    for (size_t i = 0; i < CheckpointDesk::kBooksMax + 10; ++i)
      EXPECT_EQ(worker.rpc_sync("first", &checkpoint_orders::held, name_of("asked", i)).run, 0u);
    for (size_t i = 0; i < CheckpointDesk::kBooksMax; ++i)
      ASSERT_EQ(open({.name = name_of("opened", i), .run = 1}).text, "opened") << i;
    const Error refused = open({.name = "more", .run = 1});
    EXPECT_EQ(refused.kind, ErrorKind::overloaded) << to_string(refused);
    EXPECT_NE(refused.text.find("'trainer' has begun runs of 256 names at worker 'first'"),
              std::string::npos)
        << refused.text;
    // A worker that has begun too many keeps no other one out.
    at_desk(worker, [&](CheckpointDesk& desk) {
      for (size_t i = 0; i < CheckpointDesk::kBooksMax; ++i)
        desk.open(worker, "first", {.name = name_of("of-first", i), .run = 1});
      EXPECT_THROW(desk.open(worker, "first", {.name = "more", .run = 1}), RpcError);
      desk.open(worker, "trainer", {.name = "of-trainer", .run = 1});
    });
    EXPECT_EQ(open({.name = name_of("opened", 0), .run = 2}).text, "opened");

    const CheckpointOpening long_one{
        .name = "long",
        .run = 1,
        .directory = {
            {.piece = std::string(CheckpointDesk::kDirectoryBytesMax, 'p'), .holder = "first"}}};
    try {
      at_desk(worker, [&](CheckpointDesk& desk) { desk.open(worker, "trainer", long_one); });
      ADD_FAILURE() << "opened";
    } catch (const RpcError& thrown) {
      EXPECT_EQ(thrown.error().kind, ErrorKind::overloaded);
      EXPECT_NE(thrown.error().text.find("bytes, more than 67108864"), std::string::npos)
          << thrown.error().text;
    }
  });
  program.worker("first");
  Cluster(kSeed, program, {.faults = sim::FaultLevel::none}).run();
}

TEST(Cuts, KeepNoMoreThanTwo) {
  // Goal: files and tables stay flat. Method: a thousand saves; the head has two cuts and the
  // tables are as after the second.
  Program program(training_registry());
  program.worker("trainer", [](Worker& worker) {
    const RemoteModule<NoisyLayer> layer(worker, "first", 2, 2);
    DistributedCheckpoint checkpoint(worker, "long");
    int64_t position = 0;
    checkpoint.module("layer", layer).value("position", position);
    static_cast<void>(checkpoint.resume());
    DebugInfo early;
    for (int64_t step = 1; step <= 1000; ++step) {
      checkpoint.save(step);
      if (step == 10) early = worker.debug_info();
    }
    checkpoint.wait();
    DebugInfo late = worker.debug_info();
    EXPECT_EQ(late["rpc.pending"], early["rpc.pending"]);
    EXPECT_EQ(late["rref.owners"], early["rref.owners"]);
    EXPECT_EQ(checkpoint.committed(), 1000);
    const auto head = worker.load_checkpoint("long.head");
    ASSERT_TRUE(head);
    EXPECT_EQ(head->toGenericDict().at("slots").toList().size(), 2u);
    EXPECT_EQ(head->toGenericDict().at("committed").toGenericDict().at("step").toInt(), 1000);
  });
  program.worker("first");
  Cluster(kSeed, program, {.faults = sim::FaultLevel::none}).run();
}

}  // namespace
}  // namespace rehearsal::testing
