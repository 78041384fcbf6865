#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "core/autograd/context_record.h"
#include "core/autograd/passes.h"
#include "core/base/monitor.h"
#include "core/calls/hooks.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;

// The autograd contexts of one node: what its calls recorded, and the passes over it. Nothing in it
// parks. On the strand, unless said otherwise.
//
// A context exists at its creator and at every worker that a call recorded in it reached. A worker
// that is reached by another than the creator tells the creator; when the context ends, the creator
// tells each, but not before its own calls have arrived there. A worker that loses the creator
// releases the context. A message for an ended context is refused.
class AutogradContexts final : public RecordHook {
 public:
  AutogradContexts(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
                   Deadlines& deadlines);

  // ---- the creator ----

  void open(const AutogradContextId& id);
  // Releases it here and everywhere; its passes fail.
  void end(const AutogradContextId& id);

  // ---- passes and gradients ----

  void start_pass(const ContextName& context, PassRequest request);

  // The gradients of this worker's leaves; the error: the context is not here, or what its passes
  // have added cannot be added up.
  [[nodiscard]] Result<LeafGradients> gradients(const ContextName& context) const;
  // The streams in which they are made; null: there are no devices, or it is not here.
  [[nodiscard]] Streams streams_of(const ContextName& context) const;

  // They become these, whatever the passes so far have added; the error: the context is
  // not here.
  [[nodiscard]] Status replace_gradients(const ContextName& context, LeafGradients gradients);

  // Guards the parameters of this worker: optimizers step one at a time.
  [[nodiscard]] Monitor& parameters_monitor() { return parameters_monitor_; }

  // ---- RecordHook ----

  [[nodiscard]] std::optional<ContextName> context_of(const Execution& running) const override;
  [[nodiscard]] MaybeError why_ended(const ContextName& context) const override;
  [[nodiscard]] std::optional<AutogradMetadata> record_send(const ContextName& context, WorkerId to,
                                                            CausedBy by, Payload& payload,
                                                            const std::string& what) override;
  void record_receive(const AutogradMetadata& metadata, const MessageText& text,
                      Payload& payload) override;
  void mark_unrecorded(const MessageText& text, Unrecorded why, Payload& payload) override;
  [[nodiscard]] Status meet_context(const ContextName& context, WorkerId from) override;
  void call_sent(const AutogradContextId& context, WorkerId to) override;
  void call_delivered(const AutogradContextId& context, WorkerId to) override;

  // ---- messages ----

  void on_reached(WorkerId from, const ContextReached& message);
  void on_release(WorkerId from, const ContextRelease& message);
  void on_gradients(WorkerId from, Gradients message) {
    ContextRecord* context = find(message.pass.id.context);
    passes_.on_gradients(from, context, std::move(message));
  }
  void on_answered(WorkerId from, const GradientsAnswered& message) {
    passes_.on_answered(from, message);
  }
  void on_marks(WorkerId from, const Marks& message) {
    passes_.on_marks(from, find(message.pass.id.context), message);
  }
  void on_marks_answered(WorkerId from, const MarksAnswered& message) {
    passes_.on_marks_answered(from, message);
  }
  void on_finish(WorkerId from, const PassFinish& message) {
    passes_.on_finish(from, find(message.pass.id.context), message);
  }
  void on_finished(WorkerId from, const PassFinished& message) {
    passes_.on_finished(from, message);
  }
  void on_failed(WorkerId from, const PassFailed& message) {
    passes_.on_failed(from, find(message.pass.id.context), message);
  }
  void on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why);

  // Ends every context that was created here, at a graceful shutdown; returns a line for each.
  std::vector<std::string> release_all();
  // Releases every context here, whoever has created it: this worker leaves a dynamic group.
  void release_at_leaving();
  // `peer` leaves, and was told that it is asked nothing more: no pass begins to need it.
  void ask_nothing_more(WorkerId peer) { passes_.ask_nothing_more(peer); }
  // Drops everything: the node ends.
  void clear(const Error& why);

  [[nodiscard]] uint64_t size() const { return contexts_.size(); }
  // The most contexts that one peer has brought here.
  [[nodiscard]] uint64_t peak() const { return std::max(own_.peak(), relayed_.peak()); }
  // The most passes, remembered failed ones and send functions that count for one peer.
  [[nodiscard]] uint64_t passes_peak() const { return passes_.passes_peak(); }
  [[nodiscard]] uint64_t failed_passes_peak() const { return passes_.dead_peak(); }
  [[nodiscard]] uint64_t sends_peak() const { return passes_.caused_sends().peak(); }
  // All that counts for a peer.
  [[nodiscard]] uint64_t tallied() const {
    return own_.total() + relayed_.total() + passes_.tallied();
  }
  [[nodiscard]] uint64_t counts_for(WorkerId peer) const {
    return own_.count(peer) + relayed_.count(peer) + passes_.counts_for(peer);
  }
  [[nodiscard]] uint64_t pass_count() const { return passes_.size(); }
  // Of all contexts here.
  [[nodiscard]] uint64_t send_function_count() const;
  [[nodiscard]] uint64_t running_walks() const { return passes_.running_walks(); }
  [[nodiscard]] uint64_t late_release_count() const { return late_releases_.size(); }
  [[nodiscard]] std::string debug_info() const;
  [[nodiscard]] std::string describe_waits() const { return passes_.describe(); }
  [[nodiscard]] std::string check_invariants() const;
  void set_on_progress(Task task) { passes_.set_on_progress(std::move(task)); }

 private:
  // How many ended contexts of others are remembered, so that a late call is refused at once. A
  // context that is forgotten and met again is released again by its creator.
  static constexpr size_t kEndedMax = 4096;

  [[nodiscard]] ContextRecord* find(const CausalId& id);
  ContextRecord& add(const ContextName& name);
  void release(ContextRecord& context, const Error& why);
  [[nodiscard]] MaybeError why_too_many(const ContextName& context, WorkerId from);
  void send_release(const AutogradContextId& id, WorkerId to);
  // A mutant: whoever called there tells of the end, and the creator is not told who was reached.
  [[nodiscard]] bool released_by_relays() const {
    return options_.mutants.on(Mutant::contexts_released_by_relays);
  }
  [[nodiscard]] Error ended_error(const AutogradContextId& id) const;
  // "the result of 'forward', which 'ps' sent to 'trainer'"
  [[nodiscard]] std::string text_of(const MessageText& text) const;
  void trace(EventKind kind, const ContextRecord& context);
  [[nodiscard]] const std::string& name(WorkerId id) const { return options_.names[id.value]; }

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  std::map<CausalId, ContextRecord> contexts_;
  PeerTally own_;             // of them, by the peer that has brought and created them
  PeerTally relayed_;         // by the peer that has brought those of others
  std::set<CausalId> ended_;  // of other creators; no more than kEndedMax
  std::deque<CausalId> ended_order_;
  // Releases that wait for the arrival of so many calls.
  std::map<std::pair<CausalId, WorkerId>, uint64_t> late_releases_;
  Monitor parameters_monitor_;
  Passes passes_;
};

}  // namespace rehearsal
