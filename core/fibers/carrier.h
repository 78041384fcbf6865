#pragma once

#include <boost/fiber/context.hpp>
#include <boost/fiber/properties.hpp>
#include <cstddef>

#include "core/fibers/sanitizer.h"

namespace rehearsal::fibers {

class Fiber;

// The Boost fiber that lives at the top of a stack and runs one body after another there. So a body
// costs neither the making of a context, nor its end, which Boost frees in a turn of its dispatcher
// only.
//
// Between two bodies it belongs to no thread: nothing needs to be done about it when its memory is
// given back.
class Carrier final : public boost::fibers::fiber_properties {
 public:
  // Makes one in this memory, which is a stack's. It lies at the top, with Boost's context below.
  [[nodiscard]] static Carrier& make(std::byte* bottom, std::byte* top);

  // Of this context; null if it is not one of ours.
  [[nodiscard]] static Carrier* of(const boost::fibers::context* context);

  // Takes a body on the calling thread; runs it when it is resumed. Lets go of it once it has
  // ended, or is left for ever: then the carrier is not used again.
  void begin(Fiber& fiber);
  void end();

  [[nodiscard]] Fiber* fiber() const { return fiber_; }
  [[nodiscard]] boost::fibers::context* context() const { return ctx_; }
  [[nodiscard]] const StackBounds& bounds() const { return bounds_; }

  // Boost believes that it owns it.
  static void operator delete(void*) {}

 private:
  explicit Carrier(const StackBounds& bounds) : fiber_properties(nullptr), bounds_(bounds) {}
  [[noreturn]] void run_bodies();

  const StackBounds bounds_;
  Fiber* fiber_ = nullptr;  // whose body it runs; null: none
};

}  // namespace rehearsal::fibers
