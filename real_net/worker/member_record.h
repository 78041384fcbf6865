#pragma once

#include <optional>
#include <string>

#include "core/base/ids.h"
#include "real_net/tcp/socket.h"

namespace rehearsal::real {

// The facts that a worker tells the others before they connect.
struct MemberRecord {
  std::string name;
  Address address;
  Incarnation incarnation;
  uint32_t world_size = 0;
  bool operator==(const MemberRecord&) const = default;
};

[[nodiscard]] std::string encode(const MemberRecord& record);
// Nothing if it is none.
[[nodiscard]] std::optional<MemberRecord> decode_member(const std::string& text);

}  // namespace rehearsal::real
