#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "record/item.h"
#include "record/record_header.h"

namespace rehearsal::record {

// A record that was read and checked, every byte of it. The items point into its bytes.
struct Record {
  RecordHeader header;
  std::vector<Item> items;
  std::string bytes;
};

// Whether the file begins as a record does. False also if it cannot be read.
[[nodiscard]] bool looks_like_record(const std::string& path);

// The error (bad_arguments) is one line that says what is wrong with the file: it is no record, is
// of another version, is damaged or cut short, or has lost its beginning because its ring was too
// small (then it says how large it should have been).
[[nodiscard]] Result<std::unique_ptr<Record>> read_record(const std::string& path);

}  // namespace rehearsal::record
