#include "core/fibers/carrier.h"

#include <boost/fiber/fiber.hpp>
#include <boost/fiber/policy.hpp>
#include <cstdint>
#include <memory>
#include <new>
#include <typeinfo>

#include "core/fibers/fiber.h"
#include "core/fibers/own_context.h"

namespace rehearsal::fibers {
namespace {

// Boost wants to own the memory it runs on; the pool does.
struct BorrowedStack {
  boost::context::stack_context allocate() const { return context; }
  void deallocate(boost::context::stack_context&) const noexcept {}
  boost::context::stack_context context;
};

}  // namespace

Carrier& Carrier::make(std::byte* bottom, std::byte* top) {
  static_cast<void>(OwnContext::of_thread());  // Boost tells its algorithm of the new one.
  const auto place = reinterpret_cast<uintptr_t>(top - sizeof(Carrier)) & ~(alignof(Carrier) - 1);
  const StackBounds bounds{bottom, static_cast<size_t>(top - bottom)};
  auto* const carrier = ::new (reinterpret_cast<void*>(place)) Carrier(bounds);
  boost::context::stack_context memory;
  memory.sp = carrier;
  memory.size = static_cast<size_t>(reinterpret_cast<std::byte*>(carrier) - bottom);
  fiber_properties* const properties = carrier;
  boost::fibers::fiber handle(boost::fibers::launch::post, properties, std::allocator_arg,
                              BorrowedStack{memory}, [carrier] { carrier->run_bodies(); });
  handle.detach();
  carrier->context()->detach();
  return *carrier;
}

Carrier* Carrier::of(const boost::fibers::context* context) {
  auto* const properties = context->get_properties();
  if (properties == nullptr || typeid(*properties) != typeid(Carrier)) return nullptr;
  return static_cast<Carrier*>(properties);
}

void Carrier::begin(Fiber& fiber) {
  fiber_ = &fiber;
  OwnContext::of_thread().context.attach(context());
}

void Carrier::end() {
  fiber_ = nullptr;
  context()->detach();
}

void Carrier::run_bodies() {
  for (;;) {
    fiber_->run_body();
    fiber_->leave_ended();
  }
}

}  // namespace rehearsal::fibers
