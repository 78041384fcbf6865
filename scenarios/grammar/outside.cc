#include "scenarios/grammar/outside.h"

#include <ATen/Functions.h>

#include <chrono>

#include "core/api/c10d_group.h"

// The wheel is built with it, and c10d's headers ask for it.
#define USE_DISTRIBUTED
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "scenarios/grammar/functions.h"
#include "scenarios/grammar/meetings.h"

namespace rehearsal::grammar {
namespace {

int64_t number_of(uint64_t what, const std::string& name) {
  return static_cast<int64_t>(mix(what, hash_text(name)) % 50);
}

int64_t sum_of_all(uint64_t what, const std::vector<std::string>& names) {
  int64_t sum = 0;
  for (const std::string& name : names) sum += number_of(what, name);
  return sum;
}

// Until all have come, as rendezvous make a barrier.
void arrive(c10d::Store& store, const std::string& where, size_t members) {
  if (store.add("arrived " + where, 1) == static_cast<int64_t>(members))
    store.set("all " + where, "yes");
  store.wait({"all " + where});
}

// Each writes a key, reads those of all, adds to a number, and bids for one that only the first
// gets.
void share_keys(c10d::Store& store, const std::string& name, const std::vector<std::string>& names,
                uint64_t what) {
  store.add("lives", 1);
  store.set("of " + name, name);
  store.add("sum", number_of(what, name));
  for (const std::string& other : names)
    expect("a key of another worker", 1, store.get_to_str("of " + other) == other ? 1 : 0);
  const std::string first = store.compareSet("first", "", name);
  arrive(store, "to compare", names.size());
  const int64_t sum = store.add("sum", 0);
  if (store.add("lives", 0) != static_cast<int64_t>(names.size()))
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "a worker that has come back has added once more",
                    .worker = {}});
  expect("a sum of all", sum_of_all(what, names), sum);
  expect("who was first", 1, store.get_to_str("first") == first ? 1 : 0);
  arrive(store, "to delete", names.size());
  expect("whether a key that is there is deleted", 1, store.deleteKey("of " + name) ? 1 : 0);
  expect("whether it is there then", 0, store.check({"of " + name}) ? 1 : 0);
}

}  // namespace

void meet_by_c10d(const Worker& worker, const std::vector<std::string>& names, uint64_t what) {
  const std::vector<WorkerInfo> workers = worker.workers();
  const std::string& holder = workers[what % workers.size()].name;
  const auto store = open_c10d_store(worker, holder, "meeting " + std::to_string(what));
  store->setTimeout(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience));
  share_keys(*store, worker.name(), names, what);

  const ProcessGroup group(worker, names, {.timeout = kPatience});
  const auto outside = as_c10d_group(group);
  std::vector<at::Tensor> sum{at::full({2}, number_of(what, worker.name()), at::kLong)};
  outside->allreduce(sum)->wait();
  expect("a sum by a c10d::ProcessGroup", 2 * sum_of_all(what, names),
         sum.front().sum().item<int64_t>());
  const auto backend = as_c10d_backend(group);
  std::vector<at::Tensor> given{at::full({2}, number_of(what, worker.name()), at::kLong)};
  backend->broadcast(given)->wait();
  expect("what a c10d::Backend broadcasts", 2 * number_of(what, names.front()),
         given.front().sum().item<int64_t>());
}

}  // namespace rehearsal::grammar
