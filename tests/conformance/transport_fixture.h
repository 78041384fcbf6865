#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/runtime.h"
#include "core/base/transport.h"
#include "tests/conformance/recording_sink.h"

// The fixture of the tests of transport_suite.h.
namespace rehearsal::conformance {

using What = RecordingSink::What;

inline Frame small_frame(uint64_t sequence, std::string envelope = "small") {
  Frame frame;
  frame.header = {.kind = FrameKind::message,
                  .source = {1},
                  .destination = {2},
                  .sequence = sequence,
                  .acknowledged = sequence / 2};
  frame.body = std::make_shared<FrameBody>(FrameBody{std::move(envelope), {}});
  return frame;
}

inline Segment filled_segment(uint64_t bytes, uint8_t first) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes);
  for (uint64_t i = 0; i < bytes; ++i) (*owner)[i] = std::byte(static_cast<uint8_t>(first + i));
  return {.owner = owner, .data = owner->data(), .bytes = bytes};
}

inline Frame frame_with(uint64_t sequence, const std::vector<uint64_t>& segment_bytes) {
  Frame frame = small_frame(sequence);
  auto body = std::make_shared<FrameBody>();
  body->envelope = "with segments";
  for (const uint64_t bytes : segment_bytes)
    body->segments.push_back(filled_segment(bytes, static_cast<uint8_t>(sequence)));
  frame.body = std::move(body);
  return frame;
}

inline Frame large_frame(uint64_t sequence, uint64_t bytes = 100'000) {
  return frame_with(sequence, {bytes});
}

inline bool same_bytes(const Segment& one, const Segment& other) {
  return one.bytes == other.bytes &&
         (one.bytes == 0 || std::memcmp(one.data, other.data, one.bytes) == 0);
}

inline std::vector<uint64_t> numbers_from_one(uint64_t last) {
  std::vector<uint64_t> numbers(last);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

inline bool is_prefix(const std::vector<uint64_t>& part, const std::vector<uint64_t>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

template <class World>
class TransportSuite : public testing::Test {
 protected:
  WorkerId worker(int end) { return WorkerId{static_cast<uint32_t>(end)}; }
  void open(int end) {
    world.run(end, [this, end] { world.transport(end).open(worker(1 - end)); });
  }
  void close(int end, const std::string& text) {
    world.run(end, [this, end, text] {
      world.transport(end).close(worker(1 - end), {.kind = ErrorKind::node_stopped, .text = text});
    });
  }
  void send(int end, Frame frame) {
    world.run(
        end, [this, end, &frame] { world.transport(end).send(worker(1 - end), std::move(frame)); });
  }
  bool both_up() {
    return world.advance_until([this] { return world.sink(0).up() && world.sink(1).up(); });
  }
  void connect() {
    open(0);
    open(1);
    ASSERT_TRUE(both_up());
  }
  bool arrived(int end, size_t frames) {
    return world.advance_until(
        [this, end, frames] { return world.sink(end).count(What::frame) >= frames; });
  }
  bool reported(int end, What what, size_t times = 1) {
    return world.advance_until(
        [this, end, what, times] { return world.sink(end).count(what) >= times; });
  }
  uint64_t queued(int end) {
    uint64_t bytes = 0;
    world.run(end,
              [this, end, &bytes] { bytes = world.transport(end).queued_bytes(worker(1 - end)); });
    return bytes;
  }

  World world;
};

}  // namespace rehearsal::conformance
