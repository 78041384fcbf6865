#include "real_net/gloo/gloo_thread.h"

#ifdef REHEARSAL_HAS_GLOO

#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

// The wheel is built with these, and c10d's headers ask for them.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearsal::real {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using Kind = CarriedOperation::Kind;
using Tensors = std::vector<at::Tensor>;
using std::chrono::milliseconds;

// Gloo's limit for one step of an operation whose time has none.
constexpr auto kLongest = std::chrono::minutes(10);
constexpr auto kFirstLook = milliseconds(1);
constexpr auto kLooksApart = milliseconds(50);

milliseconds time_of(const CarriedOperation& operation) {
  if (operation.time.count() <= 0) return kLongest;
  return std::clamp<milliseconds>(std::chrono::ceil<milliseconds>(operation.time), milliseconds(1),
                                  kLongest);
}

// The keys of one group in the store where the workers meet. A wait in it ends when the group is
// given up.
class GroupKeys final : public c10d::Store {
 public:
  GroupKeys(std::shared_ptr<MeetingStore> store, std::string prefix, std::shared_ptr<Orders> orders)
      : store_(std::move(store)), prefix_(std::move(prefix)), orders_(std::move(orders)) {}

  // All that this member has set.
  void forget_own() {
    for (const std::string& key : std::exchange(own_, {})) store_->erase(key);
  }

  c10::intrusive_ptr<Store> clone() override {
    return c10::make_intrusive<GroupKeys>(store_, prefix_, orders_);
  }
  using Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    own_.push_back(prefix_ + key);
    store_->set(own_.back(), std::string(value.begin(), value.end()));
  }
  std::vector<uint8_t> get(const std::string& key) override {
    wait({key});
    const std::string value = store_->get(prefix_ + key);
    return {value.begin(), value.end()};
  }
  bool check(const std::vector<std::string>& keys) override {
    std::vector<std::string> whole;
    for (const std::string& key : keys) whole.push_back(prefix_ + key);
    return store_->has(whole);
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const milliseconds& timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    for (milliseconds pause = kFirstLook; !check(keys); pause = std::min(kLooksApart, 2 * pause)) {
      TORCH_CHECK(!orders_->given_up(), "the process group has failed");
      TORCH_CHECK(std::chrono::steady_clock::now() < deadline,
                  "a member has not said where it listens");
      std::this_thread::sleep_for(pause);
    }
  }
  int64_t add(const std::string& key, int64_t value) override {
    own_.push_back(prefix_ + key);
    return store_->add(own_.back(), value);
  }
  bool deleteKey(const std::string& key) override { return store_->erase(prefix_ + key); }
  std::vector<uint8_t> compareSet(const std::string&, const std::vector<uint8_t>&,
                                  const std::vector<uint8_t>&) override {
    TORCH_CHECK(false, "keys of a process group are set once");
  }
  int64_t getNumKeys() override {
    TORCH_CHECK(false, "keys of one process group cannot be told from others");
  }

 private:
  const std::shared_ptr<MeetingStore> store_;
  const std::string prefix_;
  const std::shared_ptr<Orders> orders_;
  std::vector<std::string> own_;
};

c10d::ReduceOp c10d_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::product:
      return c10d::ReduceOp::PRODUCT;
    case ReduceOp::min:
      return c10d::ReduceOp::MIN;
    case ReduceOp::max:
      return c10d::ReduceOp::MAX;
    case ReduceOp::sum:
    case ReduceOp::average:
      break;
  }
  return c10d::ReduceOp::SUM;
}

// One group at one member, on its thread.
class GlooGroup {
 public:
  GlooGroup(GlooOptions options, const GroupCarriers::Group& group, std::shared_ptr<Orders> orders)
      : options_(std::move(options)), group_(group), orders_(std::move(orders)) {}

  void run() {
    at::set_num_threads(options_.torch_threads);
    MaybeError failed;
    while (!failed) {
      std::optional<Orders::Order> order = orders_->next();
      if (!order) break;
      const bool is_carried = order->operation.kind != Kind::open;
      failed = carry_out(order->operation);
      order->operation = {};
      orders_->tell(std::move(order->done), failed);
      if (is_carried) forget_keys();
    }
    // Other members whose gloo waits for this one notice that its ends of connections are gone.
    gloo_.reset();
    orders_->end();
  }

 private:
  MaybeError carry_out(CarriedOperation& operation) {
    try {
      if (operation.kind == Kind::open)
        open(time_of(operation));
      else
        begin(operation)->wait();
      return std::nullopt;
    } catch (const std::exception& error) {
      const std::string text = error.what();
      return Error{.kind = ErrorKind::protocol, .text = "gloo: " + text.substr(0, text.find('\n'))};
    }
  }

  void open(milliseconds time) {
    const std::string prefix = "collectives/" + std::to_string(group_.name.founder) + "/" +
                               std::to_string(group_.name.number) + "/";
    keys_ = c10::make_intrusive<GroupKeys>(options_.store, prefix, orders_);
    keys_->setTimeout(time);
    const auto options = Gloo::Options::create(time);
    options->threads = 1;
    options->devices.push_back(Gloo::createDeviceForHostname(options_.host));
    gloo_ = c10::make_intrusive<Gloo>(keys_, static_cast<int>(group_.rank),
                                      static_cast<int>(group_.size), options);
  }

  // All members have opened: nobody looks for this one any more. A store that is gone has no keys.
  void forget_keys() {
    if (keys_ == nullptr) return;
    const auto keys = std::exchange(keys_, nullptr);
    try {
      keys->forget_own();
    } catch (const std::exception&) {
    }
  }

  c10::intrusive_ptr<c10d::Work> begin(CarriedOperation& operation) {
    const milliseconds time = time_of(operation);
    switch (operation.kind) {
      case Kind::all_reduce: {
        c10d::AllreduceOptions options;
        options.reduceOp = c10d_op(operation.op);
        options.timeout = time;
        return gloo_->allreduce(operation.outputs, options);
      }
      case Kind::broadcast: {
        c10d::BroadcastOptions options;
        options.rootRank = operation.root;
        options.timeout = time;
        return gloo_->broadcast(operation.outputs, options);
      }
      case Kind::all_gather: {
        c10d::AllgatherOptions options;
        options.timeout = time;
        std::vector<Tensors> outputs = {operation.outputs};
        return gloo_->allgather(outputs, operation.inputs, options);
      }
      case Kind::reduce_scatter: {
        c10d::ReduceScatterOptions options;
        options.reduceOp = c10d_op(operation.op);
        options.timeout = time;
        std::vector<Tensors> inputs = {operation.inputs};
        return gloo_->reduce_scatter(operation.outputs, inputs, options);
      }
      case Kind::open:
        break;
    }
    TORCH_CHECK(false, "no operation that gloo carries");
  }

  const GlooOptions options_;
  const GroupCarriers::Group group_;
  const std::shared_ptr<Orders> orders_;
  c10::intrusive_ptr<GroupKeys> keys_;  // until the first operation
  c10::intrusive_ptr<Gloo> gloo_;
};

}  // namespace

bool has_gloo() { return true; }

void start_gloo_thread(GlooOptions options, const GroupCarriers::Group& group,
                       std::shared_ptr<Orders> orders) {
  auto made = std::make_unique<GlooGroup>(std::move(options), group, std::move(orders));
  std::thread([group = std::move(made)] { group->run(); }).detach();
}

}  // namespace rehearsal::real

#else

#include "core/base/check.h"

namespace rehearsal::real {

bool has_gloo() { return false; }

void start_gloo_thread(GlooOptions, const GroupCarriers::Group&, std::shared_ptr<Orders>) {
  REHEARSAL_CHECK(has_gloo());
}

}  // namespace rehearsal::real

#endif
