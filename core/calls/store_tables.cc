#include "core/calls/store_tables.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/short_text.h"

namespace rehearsal {

Error StoreTables::error(ErrorKind kind, std::string text) const {
  return {.kind = kind, .text = std::move(text), .worker = strand_.name()};
}

MaybeError StoreTables::why_unusable(WorkerId who, const StoreName& store) const {
  if (store.life != options_.incarnation.value)
    return error(ErrorKind::peer_lost, "worker '" + strand_.name() +
                                           "' has come back in a new life: open its store again");
  const auto found = stores_.find(store.name);
  if (found != stores_.end() && found->second.users.contains(who)) return std::nullopt;
  return error(ErrorKind::bad_arguments, "no store '" + short_name(store.name) + "' that worker '" +
                                             options_.names[who.value] +
                                             "' has opened: open it first");
}

Result<StoreName> StoreTables::open(WorkerId who, const std::string& name) {
  if (name.size() > kNameMax)
    return error(ErrorKind::bad_arguments, "the name of a store has " + std::to_string(kNameMax) +
                                               " bytes at most, not " +
                                               std::to_string(name.size()));
  const auto found = stores_.find(name);
  if (found != stores_.end() && found->second.users.contains(who))
    return StoreName{options_.incarnation.value, name};
  if (who != options_.self && !opened_.add(who, kStoresMax))
    return error(ErrorKind::overloaded, "worker '" + options_.names[who.value] + "' has opened " +
                                            std::to_string(kStoresMax) + " stores here already");
  stores_[name].users.insert(who);
  return StoreName{options_.incarnation.value, name};
}

// ---- values -----------------------------------------------------------------------

void StoreTables::give_back(const std::string& key, const Held& held) {
  const auto share = shares_.find(held.setter);
  --share->second.keys;
  share->second.bytes -= key.size() + held.value.size();
  if (share->second.keys == 0) shares_.erase(share);
}

Status StoreTables::put(WorkerId who, Store& table, const std::string& key,
                        const std::string& value) {
  const auto known = table.values.find(key);
  const bool is_own = known != table.values.end() && known->second.setter == who;
  const uint64_t given_back = is_own ? key.size() + known->second.value.size() : 0;
  const auto share = shares_.find(who);
  Share after = share == shares_.end() ? Share() : share->second;
  after.keys += is_own ? 0 : 1;
  after.bytes += key.size() + value.size() - given_back;
  if (who != options_.self && (after.keys > kKeysMax || after.bytes > kBytesMax))
    return error(ErrorKind::overloaded,
                 "worker '" + options_.names[who.value] + "' has set as much as one worker may: " +
                     std::to_string(kKeysMax) + " keys and " + std::to_string(kBytesMax) +
                     " bytes of keys and values in the stores of one worker");
  if (known != table.values.end()) {
    if (!is_own) give_back(key, known->second);
    known->second = {who, value};
  } else {
    table.values.emplace(key, Held{who, value});
  }
  shares_[who] = after;
  auto waiting = table.waiting.extract(key);
  if (waiting.empty()) return Unit{};
  for (const auto& [number, one] : waiting.mapped()) one->complete(value);
  return Unit{};
}

Status StoreTables::set(WorkerId who, const StoreName& store, const std::string& key,
                        const std::string& value) {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  return put(who, stores_.at(store.name), key, value);
}

Result<std::string> StoreTables::compare_set(WorkerId who, const StoreName& store,
                                             const std::string& key, const std::string& expected,
                                             const std::string& desired) {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  Store& table = stores_.at(store.name);
  const auto found = table.values.find(key);
  const bool is_there = found != table.values.end();
  if (is_there ? found->second.value != expected : !expected.empty())
    return is_there ? found->second.value : expected;
  if (Status put_there = put(who, table, key, desired); !put_there.ok())
    return std::move(put_there.error());
  return desired;
}

Result<int64_t> StoreTables::add(WorkerId who, const StoreName& store, const std::string& key,
                                 int64_t amount) {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  Store& table = stores_.at(store.name);
  int64_t number = 0;
  if (const auto found = table.values.find(key); found != table.values.end()) {
    const std::string& text = found->second.value;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size())
      return error(ErrorKind::bad_arguments, "the value of '" + short_name(key) + "' is no number");
  }
  int64_t sum = 0;
  if (__builtin_add_overflow(number, amount, &sum))
    return error(ErrorKind::bad_arguments, "the value of '" + short_name(key) + "' is " +
                                               std::to_string(number) + ", and with " +
                                               std::to_string(amount) + " no number of 64 bits");
  if (Status put_there = put(who, table, key, std::to_string(sum)); !put_there.ok())
    return std::move(put_there.error());
  return sum;
}

Result<bool> StoreTables::erase(WorkerId who, const StoreName& store, const std::string& key) {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  const auto erased = stores_.at(store.name).values.extract(key);
  if (erased.empty()) return false;
  give_back(key, erased.mapped());
  return true;
}

Result<bool> StoreTables::has_all(WorkerId who, const StoreName& store,
                                  const std::vector<std::string>& keys) const {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  const Store& table = stores_.at(store.name);
  return std::all_of(keys.begin(), keys.end(),
                     [&table](const std::string& key) { return table.values.contains(key); });
}

Result<int64_t> StoreTables::count(WorkerId who, const StoreName& store) const {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  return static_cast<int64_t>(stores_.at(store.name).values.size());
}

Result<std::vector<std::string>> StoreTables::keys(WorkerId who, const StoreName& store) const {
  if (MaybeError why = why_unusable(who, store)) return *std::move(why);
  std::vector<std::string> keys;
  for (const auto& [key, held] : stores_.at(store.name).values) keys.push_back(key);
  return keys;
}

// ---- who waits --------------------------------------------------------------------

void StoreTables::when_there(WorkerId who, const StoreName& store, const std::string& key,
                             Execution& asker,
                             const std::shared_ptr<FutureState<std::string>>& found) {
  if (MaybeError why = why_unusable(who, store)) return found->complete(*std::move(why));
  Store& table = stores_.at(store.name);
  if (const auto known = table.values.find(key); known != table.values.end())
    return found->complete(known->second.value);
  if (asker.given_up) return;
  const uint64_t number = asked_++;
  asker.when_given_up.push_back(
      [this, lives = std::weak_ptr(lives_), name = store.name, key, number] {
        if (!lives.expired()) forget(name, key, number);
      });
  table.waiting[key].emplace(number, found);
}

void StoreTables::forget(const std::string& name, const std::string& key, uint64_t number) {
  const auto store = stores_.find(name);
  if (store == stores_.end()) return;
  const auto waiting = store->second.waiting.find(key);
  if (waiting == store->second.waiting.end()) return;
  const auto one = waiting->second.extract(number);
  if (one.empty()) return;
  if (waiting->second.empty()) store->second.waiting.erase(waiting);
  one.mapped()->complete(
      error(ErrorKind::cancelled, "whoever waited for '" + short_name(key) + "' has given up"));
}

uint64_t StoreTables::awaited() const {
  uint64_t count = 0;
  for (const auto& [name, store] : stores_) count += store.waiting.size();
  return count;
}

// ---- the end ----------------------------------------------------------------------

// A store that others have opened stays, with all that the peer has set there, which counts for its
// next life: they may use it. Those who wait in a store are users of it, so that nobody waits in
// one that ends.
void StoreTables::on_peer_fenced(WorkerId peer) {
  opened_.forget(peer);
  const auto ended = std::make_shared<std::vector<Store>>();
  for (auto store = stores_.begin(); store != stores_.end();) {
    store->second.users.erase(peer);
    if (!store->second.users.empty()) {
      ++store;
      continue;
    }
    for (const auto& [key, held] : store->second.values) give_back(key, held);
    ended->push_back(std::move(store->second));
    store = stores_.erase(store);
  }
  if (!ended->empty()) strand_.release_later(ended);
}

void StoreTables::clear() {
  strand_.release_later(std::make_shared<decltype(stores_)>(std::exchange(stores_, {})));
}

}  // namespace rehearsal
