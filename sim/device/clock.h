#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rehearsal::sim::device {

// One point in the order of a stream: its count-th operation, from 1. Streams are numbered from 0
// over all devices of a machine.
struct Epoch {
  size_t stream = 0;
  uint64_t count = 0;
};

// All that is surely done before something begins: of each stream, up to which operation. A vector
// clock (C. Fidge 1988, F. Mattern 1989).
class Clock {
 public:
  // The next point of a stream.
  Epoch tick(size_t stream) {
    if (counts_.size() <= stream) counts_.resize(stream + 1);
    return {stream, ++counts_[stream]};
  }

  // From now on what `other` knows is known here, too.
  void join(const Clock& other) {
    if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
    for (size_t i = 0; i < other.counts_.size(); ++i)
      counts_[i] = std::max(counts_[i], other.counts_[i]);
  }

  [[nodiscard]] bool covers(Epoch epoch) const {
    return epoch.stream < counts_.size() && epoch.count <= counts_[epoch.stream];
  }

 private:
  std::vector<uint64_t> counts_;
};

}  // namespace rehearsal::sim::device
