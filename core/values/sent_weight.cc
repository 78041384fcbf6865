#include "core/values/sent_weight.h"

#include <bit>

#include "core/values/payload.h"

namespace rehearsal {
namespace {

// So few tensors, whatever they are, take less than any message may become.
constexpr size_t kFewTensors = 512;

// The other fields of a message, each of which counts for less than a thousand bytes.
constexpr uint64_t kOtherFieldsWeight = 1 << 16;

// A tensor without any number, at least: that it is one.
constexpr uint64_t kFieldBytesMin = 2;

// Its position in a list: gradients have one of those that are not reached.
constexpr uint64_t kPositionBytes = 3;

uint64_t bytes_of_number(int64_t number) {
  const auto bits = static_cast<uint64_t>(std::bit_width(static_cast<uint64_t>(number) | 1));
  return (bits + 6) / 7;
}

struct Sent {
  uint64_t weight = kOtherFieldsWeight;  // as its receiver counts
  uint64_t bytes = 0;                    // at least

  void add_numbers(uint64_t number_bytes) {
    weight += number_bytes * kNumberByteWeight;
    bytes += number_bytes;
  }

  void add(const SentTensor& tensor) {
    weight += kTensorFieldWeight;
    bytes += kFieldBytesMin;
    for (const int64_t size : tensor.sizes) add_numbers(bytes_of_number(size));
    for (const int64_t number : tensor.numbers) add_numbers(bytes_of_number(number));
    if (tensor.elements.bytes > 0) bytes += kWireSegmentBytes + tensor.elements.bytes;
    for (const SentTensor& part : tensor.parts) add(part);
  }
};

}  // namespace

bool are_too_heavy(const std::vector<SentTensor>& tensors, uint64_t value_bytes) {
  if (tensors.size() <= kFewTensors) return false;
  Sent sent{.bytes = value_bytes};
  for (const SentTensor& tensor : tensors) {
    sent.add(tensor);
    sent.add_numbers(kPositionBytes);
  }
  return sent.weight > kDecodedBytes + kDecodedRatio * sent.bytes;
}

}  // namespace rehearsal
