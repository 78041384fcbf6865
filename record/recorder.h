#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/runtime.h"
#include "core/base/transport.h"
#include "record/code_names.h"
#include "record/item.h"
#include "record/record_header.h"
#include "record/ring_file.h"

namespace rehearsal::record {

struct RecordOptions {
  std::string file;
  uint64_t ring_bytes = uint64_t{256} << 20;
  std::vector<std::string> arguments;  // see RecordHeader
};

// Writes the record of one node. On its strand, but for the constructor.
//
// All writes between `begin_entry` and `end_entry` belong to one entry: an input and what the node
// did with it. Outside of one, nothing is recorded.
class Recorder {
 public:
  explicit Recorder(RecordOptions options) : options_(std::move(options)) {}

  // Makes the file; `build` and `arguments` are filled in. Before the first entry. The error is one
  // line.
  [[nodiscard]] Status start(RecordHeader header);

  // Each begins an entry, of which it returns the number.
  uint64_t begin_entry(const Posted& input, const Task& task);
  uint64_t begin_entry(WorkerId peer, const Frame& frame);
  template <class Input>
  uint64_t begin_entry(const Input& input) {
    bytes_.clear();
    append_bytes(input, bytes_);
    write();
    return begin();
  }
  void end_entry();

  // The instant that the present entry's tasks see: the first answer of the clock.
  [[nodiscard]] Instant now(const Runtime& clock);
  void note_queued_bytes(uint64_t bytes);

  void note(uint64_t digest) {
    if (in_entry_) outcome_.digests.push_back(digest);
  }

  // The main has returned. Nothing is recorded any more.
  void end(const Status& status);

  [[nodiscard]] bool recording() const { return file_ != nullptr; }
  // For measurements.
  [[nodiscard]] uint64_t entries() const { return entries_; }
  [[nodiscard]] uint64_t written_bytes() const { return written_bytes_; }

 private:
  uint64_t begin();  // once the input is in `bytes_` or written
  void write();      // `bytes_`

  const RecordOptions options_;
  std::unique_ptr<RingFile> file_;  // null before `start` and after `end`
  CodeNames codes_;
  std::string bytes_;
  std::vector<std::string_view> parts_;
  bool in_entry_ = false;
  uint64_t entries_ = 0;
  uint64_t written_bytes_ = 0;
  std::optional<Instant> now_;
  Outcome outcome_;
};

}  // namespace rehearsal::record
