#include "sim/device/missing_wait.h"

namespace rehearsal::sim::device {
namespace {

std::string stream_of(const OperationName& operation) {
  return stream_text(operation.device, operation.stream);
}

std::string number_of(const OperationName& operation) {
  return "operation " + std::to_string(operation.number);
}

const char* verb(const Access& access) { return access.writes ? "writes" : "reads"; }

// Memory was given out again.
std::string freed_too_early(const MissingWait& missing) {
  const OperationName &earlier = *missing.earlier.by, &later = *missing.later.by;
  return "freed too early: " + text_of(earlier, missing.earlier_place) + " " +
         verb(missing.earlier) +
         " memory whose tensor was freed, and which is given out again on " + stream_of(later) +
         " (" + number_of(later) + (missing.later_place.empty() ? "" : ", " + missing.later_place) +
         "), while nothing says that this has been done. Missing: record_stream of that tensor "
         "for " +
         stream_of(earlier) + " before it is freed, or an event that " + stream_of(earlier) +
         " records after " + number_of(earlier) + " and " + stream_of(later) + " waits for";
}

}  // namespace

std::string text_of(const MissingWait& missing) {
  if (missing.earlier.allocation != missing.later.allocation) return freed_too_early(missing);
  const OperationName &earlier = *missing.earlier.by, &later = *missing.later.by;
  return "missing wait: " + text_of(later, missing.later_place) + " " + verb(missing.later) +
         " what " + text_of(earlier, missing.earlier_place) + " " + verb(missing.earlier) +
         ", and nothing puts them in order. Missing: an event that " + stream_of(earlier) +
         " records after " + number_of(earlier) + ", and that " + stream_of(later) +
         " waits for before " + number_of(later);
}

std::string key_of(const MissingWait& missing) {
  const bool is_freed = missing.earlier.allocation != missing.later.allocation;
  std::string key = is_freed ? "freed" : "wait";
  for (const Access* access : {&missing.earlier, &missing.later})
    key += std::string(" ") + verb(*access) + " " + access->by->name + " " + stream_of(*access->by);
  return key + " " + missing.earlier_place + " " + missing.later_place;
}

}  // namespace rehearsal::sim::device
