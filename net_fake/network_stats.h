#pragma once

#include <cstdint>

namespace rehearsal::net_fake {

// The counts of a network since its start.
struct NetworkStats {
  uint64_t messages = 0;      // frames with a message that were sent, each attempt
  uint64_t other_frames = 0;  // acknowledgements, heartbeats and their like
  uint64_t bytes = 0;         // of all frames
  uint64_t delivered = 0;     // frames that arrived
  uint64_t vanished = 0;      // sent on a link that was down or broken
  uint64_t corrupted = 0;     // in which a bit flipped; the connection broke
  uint64_t connections = 0;   // made
  uint64_t refusals = 0;      // attempts that were refused
  uint64_t hangs = 0;         // attempts that nobody answered
  uint64_t losses = 0;        // connections that broke
  uint64_t partitions = 0;    // that began
  uint64_t clogs = 0;         // that began
};

}  // namespace rehearsal::net_fake
