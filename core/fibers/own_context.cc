#include "core/fibers/own_context.h"

#include <pthread.h>

#include <boost/fiber/algo/round_robin.hpp>
#include <boost/fiber/scheduler.hpp>

#include "core/fibers/carrier.h"
#include "core/fibers/default_generator.h"
#include "core/fibers/refusal.h"

namespace rehearsal::fibers {
namespace {

// Boost's own algorithm for what is not ours.
class Algorithm final : public boost::fibers::algo::round_robin {
 public:
  void awakened(boost::fibers::context* context) noexcept override {
    // One that is dispatched runs before anybody is told; whom it interrupts is awakened then.
    const bool is_new = is_programs(context) || is_programs(boost::fibers::context::active());
    if (is_new && running_execution() != nullptr)
      refuse("boost::fibers::fiber",
             "nobody would see it run. Call a function of this worker with rpc_async instead");
    if (Carrier::of(context) == nullptr) round_robin::awakened(context);
  }

 private:
  static bool is_programs(const boost::fibers::context* context) {
    return context->is_context(boost::fibers::type::worker_context) &&
           Carrier::of(context) == nullptr;
  }
};

StackBounds bounds_of_thread() {
  StackBounds bounds;
#if defined(REHEARSAL_ADDRESS_SANITIZER)
  pthread_attr_t attributes;
  void* bottom = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &bottom, &bounds.size);
  pthread_attr_destroy(&attributes);
  bounds.bottom = bottom;
#endif
  return bounds;
}

}  // namespace

thread_local constinit const OwnContext* OwnContext::installed = nullptr;

void OwnContext::install() {
  boost::fibers::context* const own = boost::fibers::context::active();
  own->get_scheduler()->set_algo(new Algorithm);
  thread_local const OwnContext made{*own, bounds_of_thread()};
  installed = &made;
}

}  // namespace rehearsal::fibers
