#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/spare_nodes.h"
#include "core/base/wait_view.h"
#include "core/rpc/deadlines.h"
#include "core/rpc/draft.h"
#include "core/rpc/hooks.h"
#include "core/rpc/session.h"

namespace rehearsal {

// The calls that this node waits for. On the strand.
class PendingCalls {
 public:
  PendingCalls(const SessionOptions& options, Mailbox& mailbox, Sessions& sessions,
               Deadlines& deadlines)
      : options_(options), mailbox_(mailbox), sessions_(sessions), deadlines_(deadlines) {}

  void set_hooks(ForkHook* forks, RecordHook* records) {
    forks_ = forks;
    records_ = records;
  }

  // Sends it, with `call.time_left` filled in.
  void start(Draft&& draft, WhenAnswered done);

  void on_response(WorkerId from, Response&& response);
  void on_peer_fenced(WorkerId peer, const Error& why);

  // Fails all, in the order they were made.
  void fail_all(const Error& why);
  void forget_all() { pending_.clear(); }

  [[nodiscard]] uint64_t size() const { return pending_.size(); }
  [[nodiscard]] std::vector<WaitViews::UnansweredCall> views() const;

 private:
  struct Pending {
    WorkerId to;
    uint64_t number = 0;  // order of starting
    std::string function;
    DeadlineId deadline;
    std::shared_ptr<RRefHandle> target;
    WhenAnswered done;
  };

  void complete(const CallId& id, Result<Answer>&& answer);
  void time_out(const CallId& id, Duration after);
  void fail_in_order(std::vector<std::pair<uint64_t, CallId>> calls, const Error& why);
  [[nodiscard]] const std::string& name(WorkerId id) const { return options_.names[id.value]; }

  const SessionOptions& options_;
  Mailbox& mailbox_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  ForkHook* forks_ = nullptr;
  RecordHook* records_ = nullptr;
  uint64_t next_number_ = 0;
  using Table = std::unordered_map<CausalId, Pending, CausalIdHash>;
  Table pending_;  // look-up only
  SpareNodes<Table> spare_;
};

}  // namespace rehearsal
