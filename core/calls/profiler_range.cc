#include "core/calls/profiler_range.h"

#include <ATen/record_function.h>

namespace rehearsal {

struct ProfilerRange::Open {
  std::string name;  // outlives the range
  at::RecordFunction function{at::RecordScope::USER_SCOPE};
};

void ProfilerRange::Close::operator()(Open* open) const { delete open; }

bool ProfilerRange::somebody_profiles() {
  return at::hasCallbacks() && at::isRecordFunctionEnabled();
}

void ProfilerRange::begin(const std::string& name) {
  open_.reset(new Open);
  open_->name = name;
  if (open_->function.isActive()) open_->function.before(open_->name);
}

}  // namespace rehearsal
