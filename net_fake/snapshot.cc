#include "net_fake/snapshot.h"

#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::net_fake {
namespace {

Segment copied(const Segment& segment, BufferPool& pool) {
  Segment copy = pool.take(segment.bytes, segment.use);
  if (segment.bytes > 0) std::memcpy(copy.data, segment.data, segment.bytes);
  return copy;
}

uint64_t checksum(const std::vector<Segment>& segments) {
  uint64_t sum = 0;
  for (const Segment& segment : segments)
    sum = fold_segment_checksum(sum, std::span(segment.data, segment.bytes));
  return sum;
}

}  // namespace

Frame snapshot(Frame&& frame, BufferPool& pool) {
  if (frame.body == nullptr || frame.body->segments.empty()) return std::move(frame);
  auto body = std::make_shared<FrameBody>();
  body->envelope = frame.body->envelope;
  body->segments.reserve(frame.body->segments.size());
  for (const Segment& segment : frame.body->segments)
    body->segments.push_back(copied(segment, pool));
  frame.body = std::move(body);
  return std::move(frame);
}

Frame snapshot_through_bytes(const Frame& frame, BufferPool& pool) {
  std::string prefix;
  append_wire_prefix(frame, prefix);
  const auto bytes = std::as_bytes(std::span(prefix));
  const auto header = parse_wire_header(bytes.first(kWireHeaderBytes));
  REHEARSAL_CHECK(header.ok(), header.error().text);
  REHEARSAL_CHECK(wire_prefix_bytes(header.value()) == prefix.size(), prefix.size());
  auto segments = parse_wire_segments(header.value(), bytes);
  REHEARSAL_CHECK(segments.ok(), segments.error().text);

  Frame parsed{.header = header.value().frame, .body = nullptr};
  if (frame.body == nullptr) return parsed;
  auto body = std::make_shared<FrameBody>();
  body->envelope = prefix.substr(prefix.size() - header.value().envelope_bytes);
  for (size_t i = 0; i < segments.value().size(); ++i) {
    REHEARSAL_CHECK(segments.value()[i].bytes == frame.body->segments[i].bytes, i);
    body->segments.push_back(copied(frame.body->segments[i], pool));
  }
  REHEARSAL_CHECK(checksum(body->segments) == checksum(frame.body->segments));
  parsed.body = std::move(body);
  return parsed;
}

}  // namespace rehearsal::net_fake
