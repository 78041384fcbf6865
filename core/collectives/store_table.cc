#include "core/collectives/store_table.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

#include "core/functions/function_registry.h"

namespace rehearsal {

void StoreTable::set(const std::string& key, const std::string& value) {
  values_[key] = value;
  auto waiting = waiting_.extract(key);
  if (waiting.empty()) return;
  for (const Promise<std::string>& one : waiting.mapped()) one.complete(value);
}

std::string StoreTable::compare_set(const std::string& key, const std::string& expected,
                                    const std::string& desired) {
  const auto found = values_.find(key);
  const bool becomes = found == values_.end() ? expected.empty() : found->second == expected;
  if (becomes) set(key, desired);
  if (becomes) return desired;
  return found == values_.end() ? expected : found->second;
}

int64_t StoreTable::add(const std::string& key, int64_t amount) {
  int64_t number = 0;
  if (const auto found = values_.find(key); found != values_.end()) {
    const std::string& text = found->second;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size())
      throw std::invalid_argument("the value of '" + key + "' is no number");
  }
  set(key, std::to_string(number + amount));
  return number + amount;
}

bool StoreTable::has_all(const std::vector<std::string>& keys) const {
  return std::all_of(keys.begin(), keys.end(),
                     [this](const std::string& key) { return values_.contains(key); });
}

std::vector<std::string> StoreTable::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values_) keys.push_back(key);
  return keys;
}

Future<std::string> StoreTable::when_there(CallContext& call, const std::string& key) {
  const Promise<std::string> promise = call.promise<std::string>();
  if (const auto found = values_.find(key); found != values_.end())
    promise.complete(found->second);
  else
    waiting_[key].push_back(promise);
  return promise.future();
}

RRef<StoreTable> store_table(CallContext& call, const std::string& name) {
  const std::string published = "rehearsal.store " + name;
  try {
    call.publish(published, call.rref(StoreTable()));
  } catch (const RpcError& thrown) {
    if (thrown.kind() != ErrorKind::bad_arguments) throw;  // Else another one was first.
  }
  return call.lookup<StoreTable>(call.id(), published);
}

void StoreTable::register_in(FunctionRegistry& registry) {
  registry.type<StoreTable>("rehearsal.StoreTable")
      .method("set", &StoreTable::set)
      .method("compare_set", &StoreTable::compare_set)
      .method("add", &StoreTable::add)
      .method("erase", &StoreTable::erase)
      .method("has_all", &StoreTable::has_all)
      .method("size", &StoreTable::size)
      .method("keys", &StoreTable::keys)
      .method("when_there", &StoreTable::when_there);
  registry.function("rehearsal.store_table", &store_table);
}

}  // namespace rehearsal
