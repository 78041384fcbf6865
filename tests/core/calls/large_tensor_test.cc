// Tensors that 32 bits do not count.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

constexpr uint64_t kBytes = (uint64_t{4} << 30) + 4096 + 1;

// Memory of which only the pages that are written take room; null: there is none.
std::byte* reserve() {
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

TEST(LargeTensor, MoreThanFourGiBTravelInOneMessage) {
  // One sparse mapping as a tensor: encoded without a copy, its frame's prefix written and parsed,
  // the message decoded over the same segment.
  std::byte* const memory = reserve();
  if (memory == nullptr) GTEST_SKIP() << "no 4 GiB of addresses are to be had";
  const at::Tensor large = at::from_blob(
      memory, {static_cast<int64_t>(kBytes)}, [](void* begin) { ::munmap(begin, kBytes); },
      at::kByte);
  memory[kBytes - 1] = std::byte{7};

  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  const Frame frame{.header = {.sequence = 1},
                    .body = codec->encode(Message{Response{{}, written(large), {}, {}}})};
  EXPECT_GT(frame.bytes(), kBytes);
  EXPECT_EQ(frame.body->segments.at(0).data, memory);

  std::string prefix;
  append_wire_prefix(frame, prefix);
  const auto bytes = std::as_bytes(std::span(prefix));
  const WireHeader header = parse_wire_header(bytes.first(kWireHeaderBytes)).or_throw();
  std::vector<Segment> segments = parse_wire_segments(header, bytes).or_throw();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].bytes, kBytes);

  segments[0].owner = frame.body->segments[0].owner;
  segments[0].data = frame.body->segments[0].data;
  Result<Message> decoded = codec->decode({frame.body->envelope, std::move(segments)});
  ASSERT_TRUE(decoded.ok()) << decoded.error().text;
  const auto back = read<at::Tensor>(std::get<Response>(std::move(decoded).value().content).value);
  EXPECT_EQ(back.numel(), static_cast<int64_t>(kBytes));
  EXPECT_EQ(back[back.numel() - 1].item<uint8_t>(), 7);
  EXPECT_EQ(back[back.numel() - 2].item<uint8_t>(), 0);
}

TEST(LargeTensor, AViewOfAVeryLargeTensorSendsItsOwnElementsOnly) {
  std::byte* const memory = reserve();
  if (memory == nullptr) GTEST_SKIP() << "no 4 GiB of addresses are to be had";
  const at::Tensor large = at::from_blob(
      memory, {static_cast<int64_t>(kBytes)}, [](void* begin) { ::munmap(begin, kBytes); },
      at::kByte);
  memory[kBytes - 1] = std::byte{7};
  const at::Tensor ends = large.slice(0, 0, std::nullopt, static_cast<int64_t>(kBytes - 1));
  ASSERT_EQ(ends.numel(), 2);
  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  const auto body = codec->encode(Message{Response{{}, written(ends), {}, {}}});
  EXPECT_EQ(body->segments.at(0).bytes, 2u);
  Result<Message> decoded = codec->decode(*body);
  const auto back = read<at::Tensor>(std::get<Response>(std::move(decoded).value().content).value);
  EXPECT_TRUE(at::equal(back, at::tensor({0, 7}, at::kByte)));
}

}  // namespace
}  // namespace rehearsal
