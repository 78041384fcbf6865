#include "real_net/tcp/segment_checksum.h"

#include "core/base/check.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rehearsal::real {

struct SegmentChecksum::State {
  XXH3_state_t hash;
};

SegmentChecksum::SegmentChecksum() = default;
SegmentChecksum::~SegmentChecksum() = default;
SegmentChecksum::SegmentChecksum(SegmentChecksum&&) noexcept = default;
SegmentChecksum& SegmentChecksum::operator=(SegmentChecksum&&) noexcept = default;

void SegmentChecksum::begin_segment() {
  if (state_ == nullptr) state_ = std::make_unique<State>();
  XXH3_64bits_reset_withSeed(&state_->hash, value_);
}

void SegmentChecksum::update(std::span<const std::byte> bytes) {
  REHEARSAL_CHECK(state_ != nullptr);
  XXH3_64bits_update(&state_->hash, bytes.data(), bytes.size());
}

void SegmentChecksum::end_segment() {
  REHEARSAL_CHECK(state_ != nullptr);
  value_ = XXH3_64bits_digest(&state_->hash);
}

}  // namespace rehearsal::real
