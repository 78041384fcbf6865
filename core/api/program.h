#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/api/worker_state.h"
#include "core/functions/function_registry.h"
#include "core/values/device_map.h"

namespace rehearsal {

class Worker;

// How many workers of one kind a Program has. Count{2} of "trainer" makes trainer0 and trainer1;
// without a Count the name is used as it is.
struct Count {
  uint32_t value;
};

// A distributed program: the functions that may be called and the workers that run. Rank order is
// the order of declaration. One Program serves any number of clusters and runs.
class Program {
 public:
  using Main = std::function<void(Worker&)>;
  struct Member {
    std::string name;
    Main main;  // empty: it only serves
    std::vector<StateMaker> states = {};
    uint32_t restarts_max = 0;                          // zero: its failure is final
    std::vector<DeviceNumber> devices = {};             // that calls may use; empty: all it has
    std::map<std::string, DeviceMap> device_maps = {};  // by the name of the peer
  };

  // Adds what the library itself calls: names that begin with "rehearsal.". Throws
  // std::invalid_argument if the names and signatures of all functions take more than a MiB, which
  // a worker says of itself to each that it meets.
  explicit Program(FunctionRegistry registry);

  // Throws std::invalid_argument if a name is taken or cannot be one: letters, digits, '-', '_' and
  // ':' can, 127 at most. Without a main the worker serves the
  // others until they are done.
  Program& worker(const std::string& name, Main main = {});
  Program& worker(const std::string& name, Count count) { return worker(name, {}, count); }
  Program& worker(const std::string& name, Main main, Count count);

  // Gives the workers declared last (all of a Count) a value each, so that the functions they serve
  // need no globals: `state<T>()` and `with_state<T>()` of CallContext and Worker reach it. One of
  // a type. Each life makes its own, before it joins and so before it serves anybody: from copies
  // of the arguments, behind a Worker& if T's constructor takes one, or by a function that takes a
  // Worker&. Meanwhile checkpoints can be loaded, references made and earlier states used, but
  // nobody be called. An exception of the maker ends the worker, and the others are told. The value
  // ends when the group has shut down and nothing runs here any more, before what references still
  // hold is reported; after a failure with the node. Throws std::invalid_argument if there is no
  // worker, or it has one of this type.
  //
  //   program.worker("ps").state<Table>(1000)
  //       .worker("trainer", train, Count{2})
  //       .state<Model>([](Worker& worker) { return Model(worker.load_checkpoint("model")); });
  template <class T, class... A>
  Program& state(A... arguments) {
    return add_state({typeid(T),
                      [... arguments = std::move(arguments)](Worker& worker) {
                        return detail::make_state<T>(worker, arguments...);
                      },
                      &death_label<T>});
  }

  // Says where tensors of the workers declared last (all of a Count) go that are on devices: those
  // of device 0, say, to device 1 of `peer`. Arguments of calls go by the map, their results by its
  // inverse, whoever made them; a fetched value goes by that of who fetches it, and gradients where
  // their tensors came from. Without an entry a tensor on a device is refused, with an error at
  // once: of the call, or in place of its answer. Maps may name workers that are yet to come, the
  // worker itself (without one, calls to itself leave all where it is), and be given in parts.
  //
  //   program.worker("trainer", train).device_map("ps", {{0, 1}, {1, 0}}).worker("ps");
  //
  // Device 1 is cuda:1 where the workers have GPUs, and sim:1 where they are simulated
  // (WorkerAccess::device). Workers that join compare their maps: where one leads to a device that
  // there is none of, or two devices lead to one, neither takes the other in. Throws
  // std::invalid_argument if there is no worker, or a device would go to two.
  Program& device_map(const std::string& peer, const DeviceMap& map);

  // Says that of the devices of the workers declared last (all of a Count) calls use these only:
  // maps that name others are refused. Without this they may name all. Throws std::invalid_argument
  // if there is no worker.
  Program& devices(std::vector<DeviceNumber> used);

  // Lets the workers declared last (all of a Count) go on when others crash: one that fails since
  // it has lost another, while it joins or in its main, begins a new life, as after a crash of its
  // own. Its main runs from the beginning, with what its checkpoints have kept: see
  // DistributedCheckpoint. After `restarts_max` lives its failure is final. `ended_lives`
  // (recovery.h) says why they ended. Let all workers of a group recover: one that serves the
  // others fails when one of them does.
  Program& recovering(uint32_t restarts_max = 100);

  // Makes the group dynamic: its workers come and go at any time, each on its own. A worker's main
  // begins when the worker has joined: all members know it, and it knows them. When its main ends
  // it leaves: what the others have asked of it is answered, what it owns is lost to them. Worker 0
  // founds the group; who finds no member waits for one. A worker that has left or crashed may come
  // again, as a new life. A worker without a main leaves when all that have one have come and left,
  // or none of them has been there for NodeOptions::join_timeout. Calls to who is not there fail at
  // once, with peer_lost; gatherings name their workers. Without this the group is static: all
  // come, and all leave together.
  Program& dynamic() {
    is_dynamic_ = true;
    return *this;
  }
  [[nodiscard]] bool is_dynamic() const { return is_dynamic_; }

  // The same program, but for the mains: each worker has the one that `make` gives for it.
  [[nodiscard]] Program with_mains(const std::function<Main(const Member&)>& make) const;

  [[nodiscard]] const FunctionRegistry& registry() const { return *registry_; }
  // For those who may outlive the Program.
  [[nodiscard]] std::shared_ptr<const FunctionRegistry> shared_registry() const {
    return registry_;
  }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  Program& add_state(const StateMaker& maker);

  std::shared_ptr<const FunctionRegistry> registry_;
  std::vector<Member> members_;
  size_t last_declared_ = 0;  // the first of those that were declared last
  bool is_dynamic_ = false;
};

}  // namespace rehearsal
