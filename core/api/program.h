#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/functions/function_registry.h"

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
  };

  // Adds what the library itself calls: names that begin with "rehearsal.".
  explicit Program(FunctionRegistry registry);

  // Throws std::invalid_argument if a name is taken or cannot be one: letters, digits, '-', '_' and
  // ':' can, 127 at most. Without a main the worker serves the
  // others until they are done.
  Program& worker(const std::string& name, Main main = {});
  Program& worker(const std::string& name, Count count) { return worker(name, {}, count); }
  Program& worker(const std::string& name, Main main, Count count);

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

  [[nodiscard]] const FunctionRegistry& registry() const { return *registry_; }
  // For those who may outlive the Program.
  [[nodiscard]] std::shared_ptr<const FunctionRegistry> shared_registry() const {
    return registry_;
  }
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  std::shared_ptr<const FunctionRegistry> registry_;
  std::vector<Member> members_;
  bool is_dynamic_ = false;
};

}  // namespace rehearsal
