#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/calls/store_tables.h"

// The functions by which a store is used, at the worker where it lies
// (core/calls/store_tables.h has its rules and its errors). Each is done at once, on the strand.
namespace rehearsal {

class FunctionRegistry;

[[nodiscard]] Future<StoreName> open_store(CallContext& call, const std::string& name);
[[nodiscard]] Future<Unit> store_set(CallContext& call, const StoreName& store,
                                     const std::string& key, const std::string& value);
[[nodiscard]] Future<std::string> store_compare_set(CallContext& call, const StoreName& store,
                                                    const std::string& key,
                                                    const std::string& expected,
                                                    const std::string& desired);
[[nodiscard]] Future<int64_t> store_add(CallContext& call, const StoreName& store,
                                        const std::string& key, int64_t amount);
[[nodiscard]] Future<bool> store_erase(CallContext& call, const StoreName& store,
                                       const std::string& key);
[[nodiscard]] Future<bool> store_has_all(CallContext& call, const StoreName& store,
                                         const std::vector<std::string>& keys);
[[nodiscard]] Future<std::vector<std::string>> store_keys(CallContext& call,
                                                          const StoreName& store);
[[nodiscard]] Future<int64_t> store_count(CallContext& call, const StoreName& store);
// Answers as soon as the key is there.
[[nodiscard]] Future<std::string> store_when_there(CallContext& call, const StoreName& store,
                                                   const std::string& key);

void register_stores(FunctionRegistry& registry);

}  // namespace rehearsal
