#include "record/digest.h"

#include <array>

#include "core/base/hash.h"

namespace rehearsal::record {
namespace {

constexpr int kKindShift = 56;
constexpr uint64_t kHashBits = (uint64_t{1} << kKindShift) - 1;

uint64_t with_kind(uint8_t kind, uint64_t hash) {
  return uint64_t{kind} << kKindShift | (hash & kHashBits);
}

}  // namespace

uint64_t digest_of(const Event& event) {
  const std::array<uint64_t, 8> words = {event.id.incarnation.value,
                                         event.id.path.high,
                                         event.id.path.low,
                                         event.id.ordinal,
                                         event.number,
                                         event.digest,
                                         uint64_t{event.worker.value} << 32 | event.peer.value,
                                         event.message_type};
  const uint64_t text = hash_bytes(event.text.data(), event.text.size());
  return with_kind(static_cast<uint8_t>(event.kind), hash_bytes(words.data(), sizeof words, text));
}

uint64_t digest_of(Order order, WorkerId peer, uint64_t number) {
  return with_kind(static_cast<uint8_t>(order), mix(peer.value, number));
}

uint64_t hash_of(const Frame& frame) {
  const FrameHeader& header = frame.header;
  uint64_t hash = mix(static_cast<uint64_t>(header.kind), header.source.value);
  hash = mix(hash, header.destination.value);
  hash = mix(hash, header.sequence);
  hash = mix(hash, header.acknowledged);
  for (const uint64_t received : header.received) hash = mix(hash, received);
  if (header.on_large_lane) hash = mix(hash, 1);
  if (frame.body == nullptr) return hash;
  hash = hash_bytes(frame.body->envelope.data(), frame.body->envelope.size(), hash);
  for (const Segment& segment : frame.body->segments)
    hash = hash_bytes(segment.data, segment.bytes, hash);
  return hash;
}

std::string kind_text(uint64_t digest) {
  const auto kind = static_cast<uint8_t>(digest >> kKindShift);
  switch (static_cast<Order>(kind)) {
    case Order::open:
      return "wish for a link";
    case Order::send:
      return "frame";
    case Order::close:
      return "end of a link";
    case Order::stop:
      return "end of all links";
  }
  return "event " + std::to_string(kind);
}

}  // namespace rehearsal::record
