#include "core/collectives/store_table.h"

#include <memory>
#include <utility>

#include "core/calls/gatherings.h"
#include "core/functions/function_registry.h"

namespace rehearsal {
namespace {

// Answers with what `body` makes of the tables, on the strand; nothing for a caller that has given
// up, or is lost, by then.
template <class T, class Body>
Future<T> with_tables(CallContext& call, Body body) {
  const Caller& caller = *call.caller();
  const std::shared_ptr<NodeStrand>& strand = caller.strand();
  auto answer = std::make_shared<FutureState<T>>(strand, CausalId{});
  strand->post([tables = &caller.gatherings().stores(), from = call.caller_info().id, answer,
                asker = &strand->running(), body = std::move(body)] {
    if (!asker->given_up) answer->complete(body(*tables, from));
  });
  return Future<T>(answer);
}

}  // namespace

Future<StoreName> open_store(CallContext& call, const std::string& name) {
  return with_tables<StoreName>(
      call, [name](StoreTables& tables, WorkerId from) { return tables.open(from, name); });
}

Future<Unit> store_set(CallContext& call, const StoreName& store, const std::string& key,
                       const std::string& value) {
  return with_tables<Unit>(call, [store, key, value](StoreTables& tables, WorkerId from) {
    return tables.set(from, store, key, value);
  });
}

Future<std::string> store_compare_set(CallContext& call, const StoreName& store,
                                      const std::string& key, const std::string& expected,
                                      const std::string& desired) {
  return with_tables<std::string>(
      call, [store, key, expected, desired](StoreTables& tables, WorkerId from) {
        return tables.compare_set(from, store, key, expected, desired);
      });
}

Future<int64_t> store_add(CallContext& call, const StoreName& store, const std::string& key,
                          int64_t amount) {
  return with_tables<int64_t>(call, [store, key, amount](StoreTables& tables, WorkerId from) {
    return tables.add(from, store, key, amount);
  });
}

Future<bool> store_erase(CallContext& call, const StoreName& store, const std::string& key) {
  return with_tables<bool>(call, [store, key](StoreTables& tables, WorkerId from) {
    return tables.erase(from, store, key);
  });
}

Future<bool> store_has_all(CallContext& call, const StoreName& store,
                           const std::vector<std::string>& keys) {
  return with_tables<bool>(call, [store, keys](StoreTables& tables, WorkerId from) {
    return tables.has_all(from, store, keys);
  });
}

Future<std::vector<std::string>> store_keys(CallContext& call, const StoreName& store) {
  return with_tables<std::vector<std::string>>(
      call, [store](StoreTables& tables, WorkerId from) { return tables.keys(from, store); });
}

Future<int64_t> store_count(CallContext& call, const StoreName& store) {
  return with_tables<int64_t>(
      call, [store](StoreTables& tables, WorkerId from) { return tables.count(from, store); });
}

Future<std::string> store_when_there(CallContext& call, const StoreName& store,
                                     const std::string& key) {
  const Caller& caller = *call.caller();
  const std::shared_ptr<NodeStrand>& strand = caller.strand();
  auto found = std::make_shared<FutureState<std::string>>(strand, CausalId{});
  // The call stays for as long as its answer is owed.
  strand->post([tables = &caller.gatherings().stores(), from = call.caller_info().id, store, key,
                asker = &strand->running(),
                found] { tables->when_there(from, store, key, *asker, found); });
  return Future<std::string>(found);
}

void register_stores(FunctionRegistry& registry) {
  registry.function("rehearsal.open_store", &open_store).runs_inline();
  registry.function("rehearsal.store_set", &store_set).runs_inline();
  registry.function("rehearsal.store_compare_set", &store_compare_set).runs_inline();
  registry.function("rehearsal.store_add", &store_add).runs_inline();
  registry.function("rehearsal.store_erase", &store_erase).runs_inline();
  registry.function("rehearsal.store_has_all", &store_has_all).runs_inline();
  registry.function("rehearsal.store_keys", &store_keys).runs_inline();
  registry.function("rehearsal.store_count", &store_count).runs_inline();
  registry.function("rehearsal.store_when_there", &store_when_there).runs_inline().only_waits();
}

}  // namespace rehearsal
