#include "real_net/gloo/gloo_carriers.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/check.h"
#include "real_net/gloo/gloo_thread.h"

namespace rehearsal::real {
namespace {

// As long as executions that have been told to end are waited for.
constexpr auto kStopLimit = std::chrono::seconds(5);

class GlooCarrier final : public GroupCarrier {
 public:
  explicit GlooCarrier(std::shared_ptr<Orders> orders) : orders_(std::move(orders)) {}
  ~GlooCarrier() override { orders_->give_up(); }

  void start(CarriedOperation operation, UniqueFunction<void(MaybeError)> done) override {
    orders_->add({std::move(operation), std::move(done)});
  }
  void give_up() override { orders_->give_up(); }

 private:
  const std::shared_ptr<Orders> orders_;
};

}  // namespace

GlooCarriers::GlooCarriers(GlooOptions options) : options_(std::move(options)) {
  REHEARSAL_CHECK(has_gloo());
}

bool GlooCarriers::carries(CarriedOperation::Kind kind, ReduceOp op, c10::ScalarType type) const {
  const bool is_whole =
      type == at::kChar || type == at::kByte || type == at::kInt || type == at::kLong;
  const bool is_known = is_whole || type == at::kFloat || type == at::kDouble || type == at::kHalf;
  const bool reduces =
      kind == CarriedOperation::Kind::all_reduce || kind == CarriedOperation::Kind::reduce_scatter;
  const bool orders = op == ReduceOp::min || op == ReduceOp::max;
  return is_known && (!reduces || !orders || is_whole);
}

std::unique_ptr<GroupCarrier> GlooCarriers::make(const Group& group) {
  auto orders = std::make_shared<Orders>();
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(groups_, [](const auto& one) { return one.expired(); });
    groups_.push_back(orders);
  }
  start_gloo_thread(options_, group, orders);
  return std::make_unique<GlooCarrier>(std::move(orders));
}

void GlooCarriers::stop() {
  const auto deadline = std::chrono::steady_clock::now() + kStopLimit;
  std::vector<std::shared_ptr<Orders>> left;
  {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Orders>& group : std::exchange(groups_, {}))
      if (auto orders = group.lock()) left.push_back(std::move(orders));
  }
  for (const auto& orders : left) orders->give_up();
  for (const auto& orders : left) orders->wait_while_telling();
  for (const auto& orders : left) (void)orders->wait_for_end(deadline);
}

}  // namespace rehearsal::real
