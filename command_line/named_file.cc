#include "command_line/named_file.h"

#include <utility>

#include "command_line/wrong_use.h"
#include "core/base/regular_file.h"

namespace rehearsal::command_line {
namespace {

constexpr uint64_t kNamedBytesMax = uint64_t{1} << 28;

[[noreturn]] void refuse_named(const std::string& said, const Error& why,
                               const std::string& wanted) {
  throw WrongUse(said + ": cannot be read: " + why.text + "; name " + wanted);
}

}  // namespace

std::string read_named(const std::string& said, const std::string& path,
                       const std::string& wanted) {
  Result<std::string> bytes = read_regular(path, kNamedBytesMax);
  if (!bytes.ok()) refuse_named(said, bytes.error(), wanted);
  return std::move(bytes).value();
}

void check_named(const std::string& said, const std::string& path, const std::string& wanted) {
  const Result<OpenFile> file = open_regular(path);
  if (!file.ok()) refuse_named(said, file.error(), wanted);
}

}  // namespace rehearsal::command_line
