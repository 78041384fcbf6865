#include "real_net/worker/member_record.h"

#include <sstream>

namespace rehearsal::real {

std::string encode(const MemberRecord& record) {
  std::ostringstream text;
  text << record.incarnation.value << '\n'
       << record.world_size << '\n'
       << record.address.port << '\n'
       << record.address.host << '\n'
       << record.name;
  return text.str();
}

std::optional<MemberRecord> decode_member(const std::string& text) {
  std::istringstream lines(text);
  MemberRecord record;
  lines >> record.incarnation.value >> record.world_size >> record.address.port;
  lines.ignore();
  std::getline(lines, record.address.host);
  std::getline(lines, record.name);
  if (lines.bad() || record.incarnation.value == 0 || record.address.port == 0) return std::nullopt;
  return record;
}

}  // namespace rehearsal::real
