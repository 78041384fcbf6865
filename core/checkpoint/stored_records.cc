#include "core/checkpoint/stored_records.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <cstring>

// Offsets are those of the ZIP format (APPNOTE.TXT of PKWARE, 4.3 and 4.5.3).
namespace rehearsal {
namespace {

constexpr uint64_t kLocalHeader = 0x04034b50;
constexpr uint64_t kIndexHeader = 0x02014b50;
constexpr uint64_t kEnd = 0x06054b50;
constexpr uint64_t kLargeEnd = 0x06064b50;
constexpr uint64_t kLargeEndPlace = 0x07064b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kLargeEndPlaceBytes = 20;
constexpr uint64_t kIndexHeaderBytes = 46;
constexpr uint64_t kLocalHeaderBytes = 30;
constexpr uint64_t kElsewhere = 0xffffffff;  // of 32 bits: the number has 64, and is in an extra
constexpr uint64_t kLargeNumbers = 1;        // the name of that extra

// The index of an archive, at its end.
struct Index {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;
};

// A record, as the index has it.
struct Entry {
  std::string_view name;
  uint64_t bytes = 0;
  uint64_t stored_bytes = 0;
  uint64_t header = 0;  // where its local header begins
  uint64_t end = 0;     // of the entry itself
};

class Archive {
 public:
  explicit Archive(std::string_view file) : file_(file) {}

  [[nodiscard]] Index index() const {
    TORCH_CHECK(file_.size() >= kEndBytes && number(file_.size() - kEndBytes, 4) == kEnd,
                "it is no archive, or is cut off");
    const uint64_t end = file_.size() - kEndBytes;
    Index index{
        .begin = number(end + 16, 4), .bytes = number(end + 12, 4), .records = number(end + 10, 2)};
    const uint64_t place = end - kLargeEndPlaceBytes;
    if (end >= kLargeEndPlaceBytes && number(place, 4) == kLargeEndPlace) {
      const uint64_t large = number(place + 8, 8);
      TORCH_CHECK(number(large, 4) == kLargeEnd, "its index is not where it should be");
      index = {.begin = number(large + 48, 8),
               .bytes = number(large + 40, 8),
               .records = number(large + 32, 8)};
    }
    TORCH_CHECK(index.begin <= end && index.bytes <= end - index.begin,
                "its index is not where it should be");
    return index;
  }

  [[nodiscard]] Entry entry(uint64_t at) const {
    TORCH_CHECK(number(at, 4) == kIndexHeader, "its index is damaged");
    const bool is_encrypted = (number(at + 8, 2) & 1) != 0;
    const uint64_t method = number(at + 10, 2);
    TORCH_CHECK(method == 0 && !is_encrypted, "one of its records is compressed or encrypted");
    const uint64_t name_bytes = number(at + 28, 2);
    const uint64_t extra_bytes = number(at + 30, 2);
    Entry entry{.name = part(at + kIndexHeaderBytes, name_bytes),
                .bytes = number(at + 24, 4),
                .stored_bytes = number(at + 20, 4),
                .header = number(at + 42, 4)};
    const uint64_t extras = at + kIndexHeaderBytes + name_bytes;
    read_large_numbers(extras, extras + extra_bytes, entry);
    entry.end = extras + extra_bytes + number(at + 32, 2);
    TORCH_CHECK(entry.bytes == entry.stored_bytes, "one of its records has two sizes");
    return entry;
  }

  [[nodiscard]] std::string_view content(const Entry& entry) const {
    TORCH_CHECK(number(entry.header, 4) == kLocalHeader, "one of its records is not there");
    const uint64_t begin = entry.header + kLocalHeaderBytes + number(entry.header + 26, 2) +
                           number(entry.header + 28, 2);
    return part(begin, entry.bytes);
  }

 private:
  [[nodiscard]] std::string_view part(uint64_t at, uint64_t bytes) const {
    TORCH_CHECK(bytes <= file_.size() && at <= file_.size() - bytes,
                "its records are larger than the file");
    return file_.substr(at, bytes);
  }

  [[nodiscard]] uint64_t number(uint64_t at, size_t bytes) const {
    uint64_t number = 0;
    std::memcpy(&number, part(at, bytes).data(), bytes);
    return number;
  }

  void read_large_numbers(uint64_t at, uint64_t end, Entry& entry) const {
    while (at < end) {
      uint64_t next = at + 4;
      const uint64_t bytes = number(at + 2, 2);
      if (number(at, 2) == kLargeNumbers)
        for (uint64_t* const large : {&entry.bytes, &entry.stored_bytes, &entry.header}) {
          if (*large != kElsewhere) continue;
          *large = number(next, 8);
          next += 8;
        }
      at += 4 + bytes;
    }
  }

  const std::string_view file_;
};

}  // namespace

StoredRecords stored_records(std::string_view file) {
  const Archive archive(file);
  const Index index = archive.index();
  StoredRecords records;
  std::string_view folder;
  uint64_t at = index.begin;
  uint64_t claimed = 0;
  for (uint64_t i = 0; i < index.records; ++i) {
    const Entry entry = archive.entry(at);
    at = entry.end;
    TORCH_CHECK(entry.bytes <= file.size() - claimed, "its records are larger than the file");
    claimed += entry.bytes;
    const size_t slash = entry.name.find('/');
    TORCH_CHECK(slash != std::string_view::npos, "one of its records is in no folder");
    if (i == 0) folder = entry.name.substr(0, slash);
    TORCH_CHECK(entry.name.substr(0, slash) == folder, "its records are in several folders");
    const bool is_new =
        records.emplace(entry.name.substr(slash + 1), archive.content(entry)).second;
    TORCH_CHECK(is_new, "two of its records have one name");
  }
  return records;
}

}  // namespace rehearsal
