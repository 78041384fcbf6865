#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/api/call_port.h"
#include "core/api/draft.h"
#include "core/base/peer_limits.h"
#include "core/base/spare_nodes.h"
#include "core/base/wait_view.h"
#include "core/calls/deadlines.h"
#include "core/calls/hooks.h"
#include "core/calls/incoming_stream.h"
#include "core/functions/exception_types.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;

// The calls that this node waits for. On the strand.
class PendingCalls final : public CallPort {
 public:
  PendingCalls(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
               Deadlines& deadlines)
      : options_(options), strand_(strand), sessions_(sessions), deadlines_(deadlines) {}

  void set_hooks(ForkHook* forks, RecordHook* records, const ExceptionEncoder* exceptions) {
    forks_ = forks;
    records_ = records;
    exceptions_ = exceptions;
  }

  // CallPort.
  void start(Draft&& draft, WhenAnswered done) override;
  void take(const CallId& id, IncomingStream& stream, ValueTaker taker) override;
  Error cancel(const CallId& id) override;

  void on_response(WorkerId from, Response&& response);
  void on_item(WorkerId from, Item&& item);
  void on_end(WorkerId from, End&& end);

  // Gives up the calls whose target is such a reference: each completes with `why`.
  void give_up_uses(const std::function<bool(const RRefHandle&)>& is_used, const Error& why);

  // Gives up the calls that an execution of this path has made, and refuses those that it will
  // make, but for shielded ones, until it is forgotten: whoever waits for it has given up.
  void cancel_calls_of(const Hash128& maker);
  [[nodiscard]] bool is_given_up(const Hash128& maker) const {
    return !cancelled_makers_.empty() && cancelled_makers_.contains(maker);
  }
  void forget_maker(const Hash128& maker) { cancelled_makers_.erase(maker); }

  void on_peer_fenced(WorkerId peer, const Error& why);

  // Fails what is started from now on at once, with `why`.
  void refuse_all(const Error& why) { refused_ = why; }

  // Fails all, in the order they were made.
  void fail_all(const Error& why);
  void forget_all();

  [[nodiscard]] uint64_t size() const { return pending_.size(); }
  // Executions whose calls are refused.
  [[nodiscard]] uint64_t cancelled_maker_count() const { return cancelled_makers_.size(); }
  // Of them, those to `worker`.
  [[nodiscard]] uint64_t count_to(WorkerId worker) const;
  // Of the calls that were given up, those that this worker has yet to answer.
  [[nodiscard]] uint64_t owed_answers(WorkerId worker) const { return owed_by_.count(worker); }
  [[nodiscard]] std::vector<WaitViews::UnansweredCall> views() const;

 private:
  struct Pending {
    WorkerId to;
    uint64_t number = 0;    // order of starting
    bool answered = false;  // the last message of it has come, whose references may be awaited
    std::string function;
    bool in_context = false;      // an autograd one
    bool outlasts_maker = false;  // it goes on when that is given up
    DeadlineId deadline;
    std::shared_ptr<RRefHandle> target;
    std::shared_ptr<IncomingStream> stream;
    WhenAnswered done;
  };

  void complete(const CallId& id, Result<Answer>&& answer);
  void trace_completed(const CallId& id, WorkerId to, const Result<Answer>& answer);
  // The call ends before anybody else has heard of it.
  void fail_at_once(const Draft& draft, Error error, WhenAnswered& done);
  // Of a response; takes its value if that is an exception.
  [[nodiscard]] Error error_of(WorkerId from, Error error, uint32_t exception,
                               Payload& value) const;
  void time_out(const CallId& id, Duration after);
  void give_up(const CallId& id, Error why);
  void tell_given_up(const CallId& id);
  // Nobody waits for the call any more, but its callee may serve it still.
  void owe_answer(const CallId& id);
  void forget_owed(const CallId& id, WorkerId from);
  [[nodiscard]] bool is_owed(const CallId& id) const {
    return !owed_.empty() && owed_.contains(id);
  }
  [[nodiscard]] bool outlasts_maker(bool shielded) const;
  [[nodiscard]] SendOptions send_options(const Draft& draft);
  void refuse_cancelled(const Draft& draft, WhenAnswered done);
  void refuse_repeated(const Draft& draft, WhenAnswered& done);
  [[nodiscard]] Error cancelled_error(WorkerId to, const std::string& function,
                                      std::string_view why) const;
  [[nodiscard]] IncomingStream* stream_of(const CallId& id, WorkerId from);
  // Its number; none: nobody waits for it.
  [[nodiscard]] std::optional<uint64_t> number_of(const CallId& id) const;
  // Whether the call is that one still. Another one may have its id meanwhile, if a worker has
  // called twice with one id.
  [[nodiscard]] bool is_pending(const CallId& id, const std::optional<uint64_t>& number) const {
    return number && number_of(id) == number;
  }
  // Why `from` may not answer the call so: by a stream, or one value; empty: it may.
  [[nodiscard]] static std::string_view why_not_answered_by(WorkerId from, const Pending& pending,
                                                            bool by_stream);
  void put_value(const CallId& id, uint64_t position, Result<Answer>&& value);
  void end_stream(WorkerId from, End&& end);
  void settle_stream(const CallId& id);
  void grant_credit(const CallId& id);
  void fail_in_order(std::vector<std::pair<uint64_t, CallId>> calls, const Error& why);
  [[nodiscard]] const std::string& name(WorkerId id) const { return options_.names[id.value]; }

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  ForkHook* forks_ = nullptr;
  MaybeError refused_;
  RecordHook* records_ = nullptr;
  const ExceptionEncoder* exceptions_ = nullptr;
  uint64_t next_number_ = 0;
  using Table = std::unordered_map<CausalId, Pending, CausalIdHash>;
  Table pending_;  // look-up only
  SpareNodes<Table> spare_;
  std::set<Hash128> cancelled_makers_;
  // Calls that were given up and whose last message has not come: their ids are not free, or its
  // callee would be asked twice, and its late answer would be another one's. Look-up only.
  std::unordered_map<CausalId, WorkerId, CausalIdHash> owed_;
  PeerTally owed_by_;  // of them
};

}  // namespace rehearsal
