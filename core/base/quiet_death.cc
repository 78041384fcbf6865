#include "core/base/quiet_death.h"

#include "core/base/symbols.h"

namespace rehearsal {

// Without the namespaces before the type's own name; those in its template arguments stay.
std::string make_death_label(const std::type_info& type) {
  const std::string name = type_name(type);
  const size_t arguments = name.find('<');
  const size_t qualified = name.rfind("::", arguments);
  return "~" + (qualified == std::string::npos ? name : name.substr(qualified + 2));
}

}  // namespace rehearsal
