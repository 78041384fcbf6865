#include "core/base/ids.h"

#include <cstdio>
#include <ostream>

namespace rehearsal {

std::string to_string(const CausalId& id) {
  char text[64];
  std::snprintf(text, sizeof text, "%08llx#%llu",
                static_cast<unsigned long long>(id.path.high >> 32),
                static_cast<unsigned long long>(id.ordinal));
  return text;
}

std::ostream& operator<<(std::ostream& out, const CausalId& id) { return out << to_string(id); }

std::ostream& operator<<(std::ostream& out, const RRefId& id) {
  return out << "rref(" << id.causal << " at " << id.owner << ')';
}

}  // namespace rehearsal
