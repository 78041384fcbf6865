// A program whose failure takes no fault: a trainer's call makes another call, which throws.
#pragma once

#include <ATen/Functions.h>

#include <map>
#include <string>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"

namespace rehearsal::sim::nested {

// The lines in which the trainer calls, the ps calls, and the store throws: the last one by way of
// the C++ library.
inline constexpr int kThrows = __LINE__ + 3;
[[gnu::noinline]] inline int64_t look_up(const std::map<std::string, int64_t>& table,
                                         const std::string& key) {
  return table.at(key);
}

inline int64_t get(const std::string& key) {
  const std::map<std::string, int64_t> table = {{"w", 1}};
  return look_up(table, key);
}

inline constexpr int kPsCalls = __LINE__ + 3;
inline int64_t update(CallContext& context, const at::Tensor& gradient, const std::string& key) {
  const int64_t size = gradient.numel();
  return size + context.rpc_sync("store", &get, key);
}

inline constexpr int kTrainerCalls = __LINE__ + 3;
inline void trainer(Worker& worker) {
  static_cast<void>(worker.rpc_sync("store", &get, std::string("w")));
  static_cast<void>(worker.rpc_sync("ps", &update, at::ones({2}), std::string("bias")));
}

// "trainer", "ps" and "store"; the trainer fails.
inline Program program() {
  FunctionRegistry registry;
  registry.function("get", &get).function("update", &update);
  Program program(std::move(registry));
  program.worker("trainer", &trainer).worker("ps", [](Worker&) {}).worker("store", [](Worker&) {});
  return program;
}

}  // namespace rehearsal::sim::nested
