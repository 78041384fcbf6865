#include "core/base/ids.h"

#include <cstdio>
#include <sstream>

namespace rehearsal {

std::ostream& operator<<(std::ostream& out, const CausalId& id) {
  char text[64];
  std::snprintf(text, sizeof text, "%08llx#%llu",
                static_cast<unsigned long long>(id.path.high >> 32),
                static_cast<unsigned long long>(id.ordinal));
  return out << text;
}

std::string to_string(const CausalId& id) {
  std::ostringstream out;
  out << id;
  return out.str();
}

std::ostream& operator<<(std::ostream& out, const RRefId& id) {
  return out << "rref(" << id.causal << " at " << id.owner << ')';
}

}  // namespace rehearsal
