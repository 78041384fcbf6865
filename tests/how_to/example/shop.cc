#include "shop.h"

#include <rehearsal/worker.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

namespace shop {

using rehearsal::CallContext;
using rehearsal::Worker;

int64_t sell(CallContext& call) {
  return call.with_state<Shop>([&](Shop& shop) {
    if (shop.left == 0) {
      ++shop.orders;
      shop.left += call.rpc_sync("warehouse", shop.deliver);
    }
    return --shop.left;
  });
}

int64_t sell_in_turn(CallContext& call) {
  Shop& shop = call.state<Shop>();
  const std::lock_guard lock(shop.selling);
  if (shop.left == 0) {
    ++shop.orders;
    shop.left += call.rpc_sync("warehouse", shop.deliver);
  }
  return --shop.left;
}

int64_t left(CallContext& call) {
  Shop& shop = call.state<Shop>();
  const std::lock_guard lock(shop.selling);
  return shop.left;
}

int64_t deliver(CallContext&) { return kRoom; }

int64_t deliver_what_fits(CallContext& call) { return kRoom - call.rpc_sync("shop", &left); }

rehearsal::Program program(Function sell, Function deliver) {
  rehearsal::FunctionRegistry registry;
  registry.function("sell", sell)
      .function("left", &left)
      .function(deliver == &shop::deliver ? "deliver" : "deliver_what_fits", deliver);
  rehearsal::Program program(std::move(registry));
  const auto customer = [sell](Worker& worker) {
    for (int64_t i = 0; i < kRoom / 2; ++i) worker.rpc_sync("shop", sell);
    worker.barrier();
  };
  program
      .worker("shop",
              [](Worker& worker) {
                worker.barrier();
                const int64_t orders = worker.state<Shop>().orders;
                if (orders != 1)
                  throw std::logic_error(std::to_string(orders) + " orders for " +
                                         std::to_string(kRoom) + " pieces");
              })
      .state<Shop>(deliver);
  program.worker("warehouse", [](Worker& worker) { worker.barrier(); })
      .worker("one", customer)
      .worker("another", customer);
  return program;
}

}  // namespace shop
