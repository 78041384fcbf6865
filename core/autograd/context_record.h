#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/autograd/context_gradients.h"
#include "core/autograd/ended_passes.h"
#include "core/autograd/send_rpc_backward.h"
#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/base/stream_set.h"
#include "core/wire/message.h"

namespace rehearsal {

// A send function that the context owns, and what its message was, for people.
struct SentMessage {
  std::shared_ptr<SendRpcBackward> function;
  std::string what;                   // "the result of 'forward'"
  std::optional<PassId> made_by;      // the pass whose gradients the message carries
  std::optional<WorkerId> caused_by;  // the peer that it counts for (PeerLimits::sends)
};

// The part of one autograd context that one worker holds. Belongs to the strand.
struct ContextRecord {
  AutogradContextId id;
  WorkerId creator;
  std::optional<WorkerId> met_through;  // whose call has brought it here, as long as that counts

  // Its gradients are computed in these streams, by whichever pass; null: there are no devices.
  Streams streams;

  std::map<CausalId, SentMessage> sent;  // by autograd message id
  std::set<WorkerId> peers;              // sent a call of the context to us, or got one
  std::map<WorkerId, Error> lost;        // of the peers
  ContextGradients gradients;
  std::map<PassId, Error> dead;  // passes that failed, and why
  // Of these, how many each peer has made known here, as far as they count for it.
  std::map<WorkerId, uint64_t> told_dead;
  EndedPasses ended;
  uint64_t next_epoch = 1;           // of passes that start here
  std::vector<uint64_t> taken_back;  // of these, those that failed: somebody may have kept them
  MaybeError in_doubt;  // nobody can tell any more how a pass ended whose gradients are here

  // At the creator only: who has to hear the release, and calls that may not have arrived there.
  std::set<WorkerId> holders;
  std::map<WorkerId, uint64_t> undelivered;
};

}  // namespace rehearsal
