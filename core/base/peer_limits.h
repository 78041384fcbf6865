#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal {

// How much any one peer may make a node hold by what it says. Tables that grow by what is said end
// there: who goes beyond is fenced, with an error of kind protocol that names message and field. No
// honest program comes near; core/session/README.md says why, and what the largest seen was.
struct PeerLimits {
  // A value that is read may hold so many bytes of memory, and kDecodedRatio for each byte that it
  // was sent in (core/values/payload.h). A call with more fails with bad_arguments.
  uint64_t decoded_bytes = uint64_t{64} << 20;

  // Frames that have not come, though later ones have, of one peer; and such creations.
  uint64_t gaps = 1 << 16;
  // Autograd contexts of one creator. A worker that brings so many of others may bring no more.
  uint64_t contexts = 1 << 16;
  // Passes that one peer has made known here, and that go on. Of those of others further ones are
  // refused only.
  uint64_t passes = 1 << 16;
  // Of contexts that last: failed passes that one peer has made known here. Those of others, and
  // those that it had begun here, are forgotten beyond that.
  uint64_t failed_passes = 1 << 16;
  // Of contexts that last: results that one peer was sent, and gradients of its passes, for which
  // gradients may still come.
  uint64_t sends = 1 << 20;
  // Values that one peer has created here, forks of values of this node that it holds, and forks
  // that it has given: each.
  uint64_t references = 1 << 20;
  // Uses, by one peer, of values that nobody has created yet. Where another one is to create them,
  // further ones are refused only.
  uint64_t awaited_values = 1 << 17;
  // Cancellations whose calls may still come, on the other lane.
  uint64_t early_cancels = 1 << 17;
  // Calls that this node has given up and the peer has not answered: it serves fewer at a time.
  uint64_t owed_answers = 1 << 18;
  // Bytes of the arguments of one peer's calls that are not answered, from which on a further call
  // is refused.
  uint64_t served_bytes = uint64_t{16} << 30;
  // Bytes on their way to one peer, which it has not acknowledged, from which on no call of its
  // begins and no answer to it is made; and answers, of which none has more.
  uint64_t unread_bytes = uint64_t{256} << 20;
  uint64_t unread_answers = 1 << 18;
  // Gatherings to which one member has come, and not all the others.
  uint64_t gatherings = 1 << 16;
};

// The most of each that any one peer has reached.
struct PeerPeaks {
  uint64_t decoded_bytes = 0;  // of the arguments of one call
  uint64_t gaps = 0;
  uint64_t contexts = 0;
  uint64_t passes = 0;
  uint64_t failed_passes = 0;
  uint64_t sends = 0;
  uint64_t references = 0;
  uint64_t awaited_values = 0;
  uint64_t early_cancels = 0;
  uint64_t served_bytes = 0;
  uint64_t gatherings = 0;
  bool operator==(const PeerPeaks&) const = default;
};

// So much of one thing each peer makes this node hold, and the most that any one has.
class PeerTally {
 public:
  // One more; false, and none more, where it has so many already.
  [[nodiscard]] bool add(WorkerId peer, uint64_t limit) {
    if (count(peer) >= limit) return false;
    add_unlimited(peer, 1);
    return true;
  }
  // So much more, whatever it has.
  void add_unlimited(WorkerId peer, uint64_t amount) {
    if (peer.value >= counts_.size()) counts_.resize(peer.value + 1);
    peak_ = std::max(peak_, counts_[peer.value] += amount);
  }
  // One less, or so many; nothing where `forget` came before.
  void remove(WorkerId peer, uint64_t count = 1) {
    if (peer.value < counts_.size()) counts_[peer.value] -= std::min(counts_[peer.value], count);
  }
  void forget(WorkerId peer) {
    if (peer.value < counts_.size()) counts_[peer.value] = 0;
  }
  [[nodiscard]] uint64_t count(WorkerId peer) const {
    return peer.value < counts_.size() ? counts_[peer.value] : 0;
  }
  [[nodiscard]] uint64_t peak() const { return peak_; }
  // Of all peers.
  [[nodiscard]] uint64_t total() const {
    return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
  }

 private:
  std::vector<uint64_t> counts_;  // by worker
  uint64_t peak_ = 0;
};

}  // namespace rehearsal
