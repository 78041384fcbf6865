#pragma once

#include <cstdint>
#include <stdexcept>

#include "core/api/program.h"
#include "core/api/worker.h"

namespace rehearsal::sim {

inline int64_t add(const int64_t& one, const int64_t& other) { return one + other; }

inline FunctionRegistry adding_functions() {
  FunctionRegistry registry;
  registry.function("add", &add);
  return registry;
}

inline void add_twenty_times(Worker& worker) {
  for (int64_t i = 0; i < 20; ++i)
    if (worker.rpc_sync("server", &add, i, i) != 2 * i) throw std::logic_error("wrong sum");
}

// A server and two clients that make twenty calls each.
inline Program adding_program() {
  Program program(adding_functions());
  program.worker("server", [](Worker&) {}).worker("client", add_twenty_times, Count{2});
  return program;
}

}  // namespace rehearsal::sim
