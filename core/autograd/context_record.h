#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/api/leaf_gradients.h"
#include "core/autograd/send_rpc_backward.h"
#include "core/base/error.h"
#include "core/base/ids.h"
#include "core/wire/message.h"

namespace rehearsal {

// A send function that the context owns, and what its message was, for people.
struct SentMessage {
  std::shared_ptr<SendRpcBackward> function;
  std::string what;  // "the result of 'forward'"
};

// The part of one autograd context that one worker holds. Belongs to the strand.
struct ContextRecord {
  AutogradContextId id;
  WorkerId creator;

  std::map<CausalId, SentMessage> sent;  // by autograd message id
  std::set<WorkerId> peers;              // sent a call of the context to us, or got one
  std::map<WorkerId, Error> lost;        // of the peers
  LeafGradients gradients;               // of this worker's leaves, of all passes that succeeded
  std::map<PassId, Error> dead;          // passes that failed, and why
  uint64_t next_epoch = 1;               // of passes that start here

  // At the creator only: who has to hear the release, and calls that may not have arrived there.
  std::set<WorkerId> holders;
  std::map<WorkerId, uint64_t> undelivered;
};

}  // namespace rehearsal
