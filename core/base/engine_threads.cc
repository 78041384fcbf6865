#include "core/base/engine_threads.h"

#include <c10/core/AutogradState.h>

namespace rehearsal {

EngineThreads::EngineThreads(const DevicesHere& devices)
    : changed_(devices.count > 0 && !devices.engine_has_threads &&
               c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
  if (changed_) c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

EngineThreads::~EngineThreads() {
  if (changed_) c10::AutogradState::get_tls_state().set_multithreading_enabled(true);
}

}  // namespace rehearsal
