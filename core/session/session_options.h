#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/mutants.h"
#include "core/base/peer_limits.h"
#include "core/base/time.h"

namespace rehearsal {

// One life of a worker, as its sessions and what stands on them are told of it.
struct SessionOptions {
  WorkerId self;
  Incarnation incarnation;
  uint32_t life = 0;               // how many lives this worker has had before
  std::vector<std::string> names;  // of all workers, by id
  Duration peer_timeout{};         // silence after which a peer is fenced
  Duration heartbeat{};            // an idle link says so this often (Sessions::set_peer_timeout)
  Duration refusal_limit{};        // a peer that refuses connections so long is fenced; zero: never
  uint64_t window_bytes = 0;       // unacknowledged bytes before ordinary messages wait
  uint64_t window_frames = 0;
  uint64_t marked_max = 0;  // tensors that a message of a backward pass marks; see NodeOptions
  PeerLimits limits;
  bool dynamic = false;  // the group is: who has not come yet counts as lost
  // Of a dynamic group's founder that has come again: see NodeOptions.
  std::optional<std::vector<WorkerId>> founds_after = {};
  bool grouped = false;  // a peer is asked nothing before it serves (begin_to_serve)
  Mutants mutants;
};

}  // namespace rehearsal
