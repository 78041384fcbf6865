#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/gather_share.h"
#include "core/base/future.h"
#include "core/calls/deadlines.h"
#include "core/calls/mailboxes.h"
#include "core/calls/store_tables.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;

// All-gathers of this node: each member sends its share to the first of them, as a call, and is
// answered with all shares when the last has come. The n-th gathering of a member meets the n-th of
// the others; each time one of them comes back in a new life, all count from zero, and those who
// have not heard of the loss by a gathering that failed fail their next one. A member that is lost,
// or comes back, fails the gathering for all, and so does the first whose time is up: whoever
// comes later is refused at once. And the mailboxes of the process groups that are made by such a
// gathering, and the stores by which workers of other libraries find each other. On the strand.
class Gatherings {
 public:
  using Shares = std::vector<GatherShare>;

  Gatherings(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
             Deadlines& deadlines);

  // The next round of these members, of which this worker is one. Fails once with peer_lost if one
  // of them has begun a new life since the last: it may be elsewhere in its program.
  [[nodiscard]] Result<GatherRound> next_round(std::vector<uint32_t> members);

  // This worker has heard of a loss by the last round: a new life of that member is no news.
  void loss_is_known(const std::vector<uint32_t>& members) { next_[members].knows_loss = true; }

  // A member's share, at the first member; `gathered` is completed with all, in rank order.
  // `deadline`: when the member gives up.
  void contribute(WorkerId from, const GatherRound& round, GatherShare share,
                  const std::optional<Instant>& deadline,
                  std::shared_ptr<FutureState<Shares>> gathered);

  // For people: who has not come to a gathering that is under way or has failed, each after a
  // space; empty if nobody or not known here.
  [[nodiscard]] std::string missing(const GatherRound& round) const;

  void on_peer_joined(WorkerId peer, uint32_t life);
  void on_peer_fenced(WorkerId peer, const Error& why);
  void clear() {
    gatherings_.clear();
    mailboxes_.clear();
    stores_.clear();
  }
  [[nodiscard]] uint64_t size() const { return gatherings_.size(); }
  // The most that one peer has come to, and not all the others.
  [[nodiscard]] uint64_t peak() const { return open_.peak(); }
  [[nodiscard]] Mailboxes& mailboxes() { return mailboxes_; }
  [[nodiscard]] StoreTables& stores() { return stores_; }

 private:
  struct Gathering {
    std::map<uint32_t, GatherShare> shares;  // by member; their tensors are gone once it has failed
    std::vector<std::shared_ptr<FutureState<Shares>>> waiting;
    DeadlineId deadline;
    std::optional<Instant> when;
    MaybeError failed;
  };

  struct NextRound {
    std::vector<uint32_t> lives = {};  // of each member, at the last round
    uint64_t number = 0;
    bool knows_loss = false;
  };

  void fail(const GatherRound& round, const Error& why);
  void finish(const GatherRound& round);
  [[nodiscard]] bool may_come_to_one_more(WorkerId from);
  void forget(const GatherRound& round);
  void forget_if_nobody_is_left(const GatherRound& round);
  void forget_if_all_came(const GatherRound& round);
  void set_deadline(const GatherRound& round, Instant when);
  [[nodiscard]] uint64_t lives_of(const std::vector<uint32_t>& members) const;
  [[nodiscard]] MaybeError why_impossible(const GatherRound& round) const;
  [[nodiscard]] bool is_round(WorkerId from, const GatherRound& round) const;

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  std::vector<uint32_t> lives_;  // of each worker, as far as this one has met them
  std::map<std::vector<uint32_t>, NextRound> next_;
  std::map<GatherRound, Gathering> gatherings_;  // at their first member
  PeerTally open_;                               // of them, by the peers that have come to them
  Mailboxes mailboxes_;
  StoreTables stores_;
};

}  // namespace rehearsal
