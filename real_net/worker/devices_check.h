#pragma once

#include "core/base/result.h"
#include "core/base/stream_set.h"

namespace rehearsal::real {

// Whether a worker of this process can have these devices (WorkerOptions::node.devices): there are
// so many of their kind, and it is not recorded, because when a device has done something is in no
// record. The error (bad_arguments) is one line.
[[nodiscard]] Status check_devices(const DevicesHere& devices, bool is_recorded);

}  // namespace rehearsal::real
