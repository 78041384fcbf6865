#include "record/ring_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <system_error>

#include "core/base/check.h"
#include "core/base/hash.h"

namespace rehearsal::record {
namespace {

constexpr uint64_t kPageBytes = 4096;

Error unusable(const std::string& path, int error) {
  return {.kind = ErrorKind::bad_arguments,
          .text = "the record " + path +
                  " cannot be written: " + std::generic_category().message(error)};
}

}  // namespace

uint32_t checksum_of(std::string_view bytes, uint64_t place) {
  return static_cast<uint32_t>(hash_bytes(bytes.data(), bytes.size(), place));
}

Result<std::unique_ptr<RingFile>> RingFile::create(const std::string& path, const std::string& text,
                                                   uint64_t ring_bytes) {
  REHEARSAL_CHECK(ring_bytes >= kRingBytesMin, ring_bytes);
  REHEARSAL_CHECK(text.size() <= std::numeric_limits<uint32_t>::max(), text.size());
  const uint64_t ring_offset =
      (kTextOffset + text.size() + kPageBytes - 1) / kPageBytes * kPageBytes;
  // A new file: a process that still has an earlier one keeps it.
  unlink(path.c_str());
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return unusable(path, errno);
  int error = posix_fallocate(file, 0, static_cast<off_t>(ring_offset + ring_bytes));
  void* memory = MAP_FAILED;
  if (error == 0) {
    memory = mmap(nullptr, ring_offset + ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) error = errno;
  }
  close(file);
  if (error != 0) {
    unlink(path.c_str());
    return unusable(path, error);
  }
  std::unique_ptr<RingFile> ring(
      new RingFile(static_cast<std::byte*>(memory), ring_offset, ring_bytes));
  std::memcpy(ring->memory_ + kTextOffset, text.data(), text.size());
  Preface preface{};
  std::memcpy(preface.magic, kMagic, sizeof kMagic);
  preface.version = kVersion;
  preface.text_bytes = static_cast<uint32_t>(text.size());
  preface.text_checksum = hash_bytes(text.data(), text.size());
  preface.ring_offset = ring_offset;
  preface.ring_bytes = ring_bytes;
  std::memcpy(ring->memory_, &preface, sizeof preface);
  return ring;
}

RingFile::RingFile(std::byte* memory, uint64_t ring_offset, uint64_t ring_bytes)
    : memory_(memory), ring_offset_(ring_offset), ring_bytes_(ring_bytes) {}

RingFile::~RingFile() { munmap(memory_, ring_offset_ + ring_bytes_); }

void RingFile::copy_in(uint64_t place, std::string_view bytes) {
  while (!bytes.empty()) {
    const uint64_t at = place % ring_bytes_;
    const uint64_t size = std::min<uint64_t>(bytes.size(), ring_bytes_ - at);
    std::memcpy(memory_ + ring_offset_ + at, bytes.data(), size);
    bytes.remove_prefix(size);
    place += size;
  }
}

void RingFile::append(std::span<const std::string_view> parts) {
  uint64_t place = written_ + sizeof(ItemFrame);
  for (const std::string_view part : parts) {
    copy_in(place, part);
    place += part.size();
  }
  const uint64_t begin = written_ + sizeof(ItemFrame);
  const uint64_t bytes = place - begin;
  const uint64_t at = begin % ring_bytes_;
  ItemFrame frame{static_cast<uint32_t>(bytes), 0};
  // An item that is cut by the ring's end belongs to a record that has lost its beginning, which
  // nobody can replay: it goes without a checksum.
  if (at + bytes <= ring_bytes_)
    frame.checksum =
        checksum_of({reinterpret_cast<const char*>(memory_ + ring_offset_ + at), bytes}, begin);
  copy_in(written_, {reinterpret_cast<const char*>(&frame), sizeof frame});
  written_ = place;
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(memory_ + offsetof(Preface, written)))
      .store(written_, std::memory_order_release);
}

}  // namespace rehearsal::record
