#pragma once

#include <string>
#include <vector>

namespace rehearsal::real {

// Names that the resolver of this process knows beside those of the system, for tests of hosts with
// several addresses. A test that calls one of the functions below has them.
inline constexpr char kBothFamilies[] = "both.rehearsal.test";  // ::1, then 127.0.0.1
inline constexpr char kNewFamily[] = "six.rehearsal.test";      // ::1

// The name that this machine calls itself by. The resolver knows it as 127.0.1.1, as that of many a
// machine does.
[[nodiscard]] std::string own_name();

// Whether this machine has the loopback address of IPv6.
[[nodiscard]] bool has_ipv6();

// Every way to name this machine as only itself knows it: both families, names, another number.
[[nodiscard]] std::vector<std::string> loopback_hosts();

}  // namespace rehearsal::real
