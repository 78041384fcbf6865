#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "real_net/worker/placement.h"
#include "record/recorder.h"

namespace rehearsal::real {

// Where a worker's record goes and how large it may become. A member left alone comes from the
// environment: REHEARSAL_RECORD (a folder) and REHEARSAL_RECORD_SIZE.
struct RecordPlace {
  std::string folder;                  // empty: nothing is recorded
  std::optional<uint64_t> bytes;       // of the ring; default: 256 MiB
  std::vector<std::string> arguments;  // see RecordHeader
};

// The options of this worker's record: FOLDER/NAME.record, in a folder that is made if it is
// missing. A record that is there already, of an earlier life, becomes NAME.previous.record. Empty
// if nothing is to be recorded; the error (bad_arguments) is one line.
[[nodiscard]] Result<std::optional<record::RecordOptions>> record_options(
    const RecordPlace& place, const Environment& environment, const std::string& worker);

// "64M", "2G", "512K" or a number of bytes; empty if it is none of these, less than a
// ring needs, or more than 4G.
[[nodiscard]] std::optional<uint64_t> parse_record_size(const std::string& text);

}  // namespace rehearsal::real
