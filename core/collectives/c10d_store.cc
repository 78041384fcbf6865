// A c10d::Store over calls.
// The wheel is built with it, and c10d's headers ask for it.
#define USE_DISTRIBUTED
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "core/api/c10d_group.h"
#include "core/collectives/store_table.h"

namespace rehearsal {
namespace {

using Bytes = std::vector<uint8_t>;

std::string text_of(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }
Bytes bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

class CalledStore final : public c10d::Store {
 public:
  CalledStore(Calls calls, WorkerId at, StoreName store)
      : calls_(std::move(calls)), at_(at), store_(std::move(store)) {}

  c10::intrusive_ptr<Store> clone() override {
    auto copy = c10::make_intrusive<CalledStore>(calls_, at_, store_);
    copy->setTimeout(timeout_);
    return copy;
  }

  using Store::compareSet;
  using Store::set;
  void set(const std::string& key, const Bytes& value) override {
    calls_.rpc_sync(at_, &store_set, store_, key, text_of(value));
  }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return bytes_of(
        calls_.rpc_sync(at_, &store_compare_set, store_, key, text_of(expected), text_of(desired)));
  }
  Bytes get(const std::string& key) override { return bytes_of(await(key, timeout_)); }
  int64_t add(const std::string& key, int64_t value) override {
    return calls_.rpc_sync(at_, &store_add, store_, key, value);
  }
  bool deleteKey(const std::string& key) override {
    return calls_.rpc_sync(at_, &store_erase, store_, key);
  }
  bool check(const std::vector<std::string>& keys) override {
    return calls_.rpc_sync(at_, &store_has_all, store_, keys);
  }
  int64_t getNumKeys() override { return calls_.rpc_sync(at_, &store_count, store_); }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const std::string& key : keys) await(key, timeout);
  }
  std::vector<std::string> listKeys() override { return calls_.rpc_sync(at_, &store_keys, store_); }

 private:
  std::string await(const std::string& key, const std::chrono::milliseconds& timeout) const {
    const Timeout time = timeout == kNoTimeout ? Timeout::never() : Timeout(timeout);
    return calls_.with_timeout(time).rpc_sync(at_, &store_when_there, store_, key);
  }

  const Calls calls_;
  const WorkerId at_;
  const StoreName store_;
};

}  // namespace

c10::intrusive_ptr<c10d::Store> open_c10d_store(const WorkerAccess& worker, const Target& at,
                                                const std::string& name) {
  const WorkerId id = worker.caller()->find(at);
  return c10::make_intrusive<CalledStore>(worker, id, worker.rpc_sync(id, &open_store, name));
}

}  // namespace rehearsal
