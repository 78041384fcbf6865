// Goal: calls that are computed together come after what made their items, and whoever made these
// after the batch. Method: batches of calls and of mains on simulated devices, which tell each wait
// that is missing.
#include <torch/types.h>

#include <vector>

#include "core/api/batcher.h"
#include "tests/reference/devices.h"

namespace rehearsal::reference::device_batches_test {
namespace {

// Items of many calls, computed together.
class Doubler {
 public:
  explicit Doubler(CallContext& call)
      : weight_(on(call, 0, 2)),
        batcher_(call, {.size = 3, .delay = std::chrono::milliseconds(1)},
                 [this](std::vector<at::Tensor> items) {
                   const at::Tensor all = worked(at::stack(items)) * weight_;
                   weight_ = worked(weight_);
                   return all.unbind();
                 }) {}
  Future<at::Tensor> twice(const at::Tensor& item) { return batcher_.add(worked(item)); }

 private:
  at::Tensor weight_;
  Batcher<at::Tensor, at::Tensor> batcher_;
};

// The same for calls of a function, which have streams of their own.
class SharedDoubler {
 public:
  explicit SharedDoubler(Worker& worker)
      : batcher_(worker, {.size = 3, .delay = std::chrono::milliseconds(1)},
                 [](std::vector<at::Tensor> items) {
                   std::vector<at::Tensor> doubled;
                   for (const at::Tensor& item : items) doubled.push_back(worked(item * 2));
                   return doubled;
                 }) {}
  Future<at::Tensor> twice(const at::Tensor& item) { return batcher_.add(worked(item)); }

 private:
  Batcher<at::Tensor, at::Tensor> batcher_;
};
Future<at::Tensor> twice_together(CallContext& call, const at::Tensor& item) {
  return call.state<SharedDoubler>().twice(item);
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Doubler>("Doubler").constructor<CallContext&>().method("twice", &Doubler::twice);
  registry.function("twice_together", &twice_together);
  return registry;
}

void holds(const Program::Main& main, uint64_t seeds = 20) {
  Program program(functions());
  const Program workers = three_workers({}, main);
  for (const Program::Member& member : workers.members()) {
    program.worker(member.name, member.main).state<SharedDoubler>();
    for (const auto& [peer, map] : member.device_maps) program.device_map(peer, map);
  }
  in_both_worlds(program, {.seeds = tries(seeds), .devices = 1});
}

TEST(DeviceBatches, OfAValue) {
  holds(
      [](Worker& worker) {
        for (const char* to : {"worker1", "worker0"}) {
          const RRef<Doubler> doubler = worker.remote<Doubler>(to);
          std::vector<Future<at::Tensor>> doubled;
          for (int i = 0; i < 40; ++i)
            doubled.push_back(doubler.rpc_async(&Doubler::twice, worked(on(worker, 0, i))));
          for (int i = 0; i < 40; ++i) expect_all(doubled[i].wait(), 2 * i);
        }
      },
      6);
}

TEST(DeviceBatches, OfCallsThatHaveStreamsOfTheirOwn) {
  holds(
      [](Worker& worker) {
        for (int round = 0; round < 4; ++round) {
          std::vector<Future<at::Tensor>> doubled;
          for (int i = 0; i < 20; ++i)
            doubled.push_back(
                worker.rpc_async("worker1", &twice_together, worked(on(worker, 0, i))));
          for (int i = 0; i < 20; ++i) expect_all(doubled[i].wait(), 2 * i);
        }
      },
      6);
}

// The memory of an item is of the streams that added it, also of the main's.
TEST(DeviceBatches, LetTheirItemsGo) {
  holds([](Worker& worker) {
    std::vector<Future<at::Tensor>> doubled;
    for (int i = 0; i < 3; ++i)
      doubled.push_back(worker.state<SharedDoubler>().twice(worked(on(worker, 0, i))));
    worker.sleep(std::chrono::milliseconds(5));
    (void)worked(on(worker, 0, 9));
    for (int i = 0; i < 3; ++i) expect_all(doubled[i].wait(), 2 * i);
  });
}

}  // namespace
}  // namespace rehearsal::reference::device_batches_test
