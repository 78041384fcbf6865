#include "real_net/worker/record_place.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

namespace rehearsal::real {
namespace {

// No item of a ring that is not larger can be longer than its 32-bit length says.
constexpr uint64_t kRecordBytesMax = uint64_t{1} << 32;

}  // namespace

std::optional<uint64_t> parse_record_size(const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  const std::string unit(stop, end);
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (shift < 0 || number > kRecordBytesMax >> shift) return std::nullopt;
  const uint64_t bytes = number << shift;
  if (bytes < record::kRingBytesMin) return std::nullopt;
  return bytes;
}

Result<std::optional<record::RecordOptions>> record_options(const RecordPlace& place,
                                                            const Environment& environment,
                                                            const std::string& worker) {
  const std::string folder =
      place.folder.empty() ? environment("REHEARSAL_RECORD").value_or("") : place.folder;
  if (folder.empty()) return std::optional<record::RecordOptions>();
  record::RecordOptions options{.arguments = place.arguments};
  if (place.bytes) {
    options.ring_bytes = *place.bytes;
  } else if (const auto text = environment("REHEARSAL_RECORD_SIZE")) {
    const std::optional<uint64_t> bytes = parse_record_size(*text);
    if (!bytes)
      return wrong_arguments("REHEARSAL_RECORD_SIZE=" + *text +
                             ": type a size from 4K to 4G, for example 64M");
    options.ring_bytes = *bytes;
  }
  std::string name = worker;
  std::replace(name.begin(), name.end(), '/', '_');
  const std::filesystem::path base = std::filesystem::path(folder) / name;
  options.file = base.string() + ".record";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && std::filesystem::exists(options.file, error))
    std::filesystem::rename(options.file, base.string() + ".previous.record", error);
  if (error)
    return wrong_arguments("the folder " + folder + " cannot hold a record: " + error.message());
  return std::optional(std::move(options));
}

}  // namespace rehearsal::real
