#pragma once

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "core/base/monitor.h"

// Values that a worker has for its whole life, one of each type: see Program::state.
namespace rehearsal {

class Worker;

// How a value is made, anew for each life.
struct StateMaker {
  std::type_index type;
  std::function<std::shared_ptr<void>(Worker&)> make;
  std::string_view (*death_label)() = nullptr;  // names the execution in which it ends
};

// The values of one life. Made by the worker's main before it joins, then only read.
class WorkerStates {
 public:
  struct State {
    std::type_index type;
    std::shared_ptr<void> value;
    std::string_view (*death_label)() = nullptr;
    std::shared_ptr<Monitor> monitor = std::make_shared<Monitor>();
  };

  WorkerStates() = default;
  ~WorkerStates() { end(); }
  WorkerStates(WorkerStates&&) = default;

  // Those made before can be used by those that come later. Throws as the makers do.
  void make(const std::vector<StateMaker>& makers, Worker& worker);

  // Destroys them, the last one first.
  void end();
  // The last one, for whoever destroys it; there is one.
  [[nodiscard]] State take_last();

  // Null if there is none of this type.
  [[nodiscard]] const State* find(std::type_index type) const;

  // Throws RpcError (bad_arguments) if there is none of this type.
  [[nodiscard]] const State& at(const std::type_info& type, const std::string& worker) const;

  [[nodiscard]] bool empty() const { return all_.empty(); }

 private:
  std::vector<State> all_;
};

namespace detail {

// A function that is given the worker makes the T; else a constructor of T that takes the worker
// first does, else one that takes the arguments alone.
template <class T, class... A>
std::shared_ptr<void> make_state(Worker& worker, const A&... arguments) {
  if constexpr (sizeof...(A) == 1 && (std::is_invocable_r_v<T, const A&, Worker&> && ...)) {
    return std::shared_ptr<T>(new T((arguments, ...)(worker)));
  } else if constexpr (std::is_constructible_v<T, Worker&, const A&...>) {
    return std::make_shared<T>(worker, arguments...);
  } else {
    static_assert(std::is_constructible_v<T, const A&...>,
                  "a worker's state is made from copies of the arguments of `state`, behind a "
                  "Worker& if its constructor takes one; or by a function that takes a Worker&");
    return std::make_shared<T>(arguments...);
  }
}

}  // namespace detail
}  // namespace rehearsal
