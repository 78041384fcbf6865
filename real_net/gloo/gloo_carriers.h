#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/collectives/group_carrier.h"
#include "real_net/gloo/orders.h"
#include "real_net/worker/meeting_store.h"

namespace rehearsal::real {

// Whether the LibTorch that this was built with has gloo.
[[nodiscard]] bool has_gloo();

struct GlooOptions {
  std::string host;                     // where it listens, on a port of its own
  std::shared_ptr<MeetingStore> store;  // where the members of a group find each other
  int torch_threads = 1;
};

// Large tensors of process groups go by gloo, the backend of c10d for tensors in host memory: over
// connections of its own, from each member to each other, that the first large operation of a group
// makes. Each group has a thread that gives gloo one operation after the other and waits for it.
//
// Gloo cannot be told to stop. When a group fails, its thread ends as soon as gloo notices that
// another member's end of a connection is gone; at the latest when the operation's time is up.
class GlooCarriers final : public GroupCarriers {
 public:
  // REQUIRES: has_gloo()
  explicit GlooCarriers(GlooOptions options);
  ~GlooCarriers() override { stop(); }

  // Sums and products of the types that every gloo knows. Min and max of integers only: gloo's do
  // not hand on what is no number, as ours do.
  [[nodiscard]] bool carries(CarriedOperation::Kind kind, ReduceOp op,
                             c10::ScalarType type) const override;
  [[nodiscard]] std::unique_ptr<GroupCarrier> make(const Group& group) override;

  // Nobody is told anything any more. Waits for the threads, for some seconds at most: one that
  // gloo holds longer is left to itself. Before the node dies; any thread but those.
  void stop();

 private:
  const GlooOptions options_;
  std::mutex mutex_;
  std::vector<std::weak_ptr<Orders>> groups_;
};

}  // namespace rehearsal::real
