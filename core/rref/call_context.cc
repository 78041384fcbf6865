#include "core/api/call_context.h"

#include "core/calls/served_calls.h"

namespace rehearsal {

CallContext::CallContext(Calls calls, std::shared_ptr<const ServedCall> served)
    : WorkerAccess(std::move(calls)), served_(std::move(served)) {
  if (served_->call.context) record_in(*served_->call.context);
  if (served_->call.trace) trace_in(within(*served_->call.trace, served_->call.id));
}

c10::Device CallContext::result_device(const c10::Device& device) const {
  if (device.is_cpu()) return device;
  const bool leads_back =
      served_->devices != nullptr && served_->devices->at(DeviceNumber(device)).has_value();
  return leads_back ? device : c10::Device(c10::kCPU);
}

std::string CallContext::traceparent() const {
  return served_->call.trace ? to_traceparent(*served_->call.trace) : std::string();
}

WorkerInfo CallContext::caller_info() const {
  return {caller()->names()[served_->caller.value], served_->caller};
}

bool CallContext::cancelled() const {
  bool cancelled = false;
  const Status status =
      caller()->strand()->wait("a call's state", served_->call.id, [&](WaitHandle wait) {
        cancelled = served_->cancelled;
        wait.end();
      });
  // A function that runs inline cannot wait to be told.
  if (!status.ok()) return status.error().kind != ErrorKind::would_park;
  return cancelled;
}

}  // namespace rehearsal
