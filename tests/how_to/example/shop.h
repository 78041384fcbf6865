// A shop that orders from a warehouse when it has nothing left: state that the functions of one
// worker share.
#pragma once

#include <rehearsal/call_context.h>
#include <rehearsal/program.h>

#include <boost/fiber/mutex.hpp>
#include <cstdint>

namespace shop {

inline constexpr int64_t kRoom = 10;  // for so many pieces

using Function = int64_t (*)(rehearsal::CallContext&);

struct Shop {
  explicit Shop(Function deliver) : deliver(deliver) {}
  const Function deliver;  // of the warehouse
  boost::fibers::mutex selling;
  int64_t left = 0;
  int64_t orders = 0;
};

// At the shop: sells a piece, of which it returns how many are left.
int64_t sell(rehearsal::CallContext& call);
int64_t sell_in_turn(rehearsal::CallContext& call);
int64_t left(rehearsal::CallContext& call);

// At the warehouse: returns how many pieces it sends.
int64_t deliver(rehearsal::CallContext& call);
int64_t deliver_what_fits(rehearsal::CallContext& call);

// "shop", "warehouse" and two customers, who together buy kRoom pieces. The shop throws
// std::logic_error if it has ordered more than once.
rehearsal::Program program(Function sell, Function deliver);

}  // namespace shop
