#pragma once

#include <boost/fiber/context.hpp>

#include "core/fibers/sanitizer.h"

namespace rehearsal::fibers {

// The code of a thread that runs on no fiber, as Boost.Fiber knows it, and where its stack lies.
//
// Boost's scheduler of the thread runs none of our fibers: whoever resumes one names it. Fibers
// that the program makes itself are left to that scheduler, but no execution may make one: it would
// run, if at all, where nobody sees it.
struct OwnContext {
  // Of the calling thread; made, and the scheduler told, at the first call.
  static const OwnContext& of_thread() {
    if (installed == nullptr) [[unlikely]]
      install();
    return *installed;
  }

  boost::fibers::context& context;
  StackBounds bounds;  // known where a sanitizer asks for it

 private:
  static void install();
  static thread_local constinit const OwnContext* installed;
};

}  // namespace rehearsal::fibers
