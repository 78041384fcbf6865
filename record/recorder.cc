#include "record/recorder.h"

#include "core/base/check.h"
#include "core/base/runtime.h"

namespace rehearsal::record {

Status Recorder::start(RecordHeader header) {
  REHEARSAL_CHECK(file_ == nullptr);
  header.build = build_of_this_process();
  header.arguments = options_.arguments;
  Result<std::unique_ptr<RingFile>> file =
      RingFile::create(options_.file, text_of(header), options_.ring_bytes);
  if (!file.ok()) return file.error();
  file_ = std::move(file).value();
  return Unit{};
}

uint64_t Recorder::begin_entry(const Posted& input, const Task& task) {
  Posted named = input;
  named.code = codes_.word_of(task);
  return begin_entry(named);
}

uint64_t Recorder::begin_entry(WorkerId peer, const Frame& frame) {
  bytes_.clear();
  append_bytes(peer, frame, bytes_);
  parts_.clear();
  parts_.emplace_back(bytes_);
  if (frame.body != nullptr) {
    for (const Segment& segment : frame.body->segments)
      parts_.emplace_back(reinterpret_cast<const char*>(segment.data), segment.bytes);
  }
  if (file_ != nullptr) file_->append(parts_);
  return begin();
}

uint64_t Recorder::begin() {
  REHEARSAL_CHECK(!in_entry_);
  in_entry_ = true;
  now_.reset();
  return entries_++;
}

void Recorder::end_entry() {
  REHEARSAL_CHECK(in_entry_);
  in_entry_ = false;
  bytes_.clear();
  append_bytes(outcome_, bytes_);
  outcome_.digests.clear();
  write();
}

Instant Recorder::now(const Runtime& clock) {
  if (!in_entry_) return clock.now();
  if (now_) return *now_;
  now_ = clock.now();
  bytes_.clear();
  append_bytes(Read{Read::Kind::now, static_cast<uint64_t>(now_->time_since_epoch().count())},
               bytes_);
  write();
  return *now_;
}

void Recorder::note_queued_bytes(uint64_t bytes) {
  bytes_.clear();
  append_bytes(Read{Read::Kind::queued_bytes, bytes}, bytes_);
  write();
}

void Recorder::end(const Status& status) {
  bytes_.clear();
  Ended ended;
  if (!status.ok()) ended.failure = Status(status).error();
  append_bytes(ended, bytes_);
  write();
  file_.reset();
}

void Recorder::write() {
  if (file_ == nullptr) return;
  parts_.assign(1, bytes_);
  file_->append(parts_);
  written_bytes_ = file_->written();
}

}  // namespace rehearsal::record
