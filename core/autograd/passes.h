#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/autograd/context_record.h"
#include "core/autograd/diffusion.h"
#include "core/autograd/node_makers.h"
#include "core/autograd/node_turns.h"
#include "core/autograd/pass_walk.h"
#include "core/base/peer_limits.h"
#include "core/calls/deadlines.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;
struct SendOptions;
struct Violation;

// A backward pass that is about to start here.
struct PassRequest {
  std::vector<WalkRoot> roots;
  bool retain_graph = false;
  bool create_graph = false;
  PassMode mode = PassMode::smart;
  std::optional<Instant> deadline;
  Streams made_in = nullptr;          // the roots are made in these; null: there are no devices
  UniqueFunction<void(Status)> done;  // once; on the strand
};

// The backward passes that this worker takes part in. On the strand; nothing in it parks.
//
// Gradients flow first, and as far as they can: a node waits for those send functions only that may
// still contribute to it. They are a diffusing computation (diffusion.h), so that the starter
// learns when none is on its way any more. Then waves go over the workers of the context (echo
// algorithm; Chang 1982):
// - *check*. In FAST mode each looks whether all its send functions have got gradients. In SMART
//   mode a worker whose live nodes have not all been evaluated waits for send functions that may
//   get nothing. It marks those that its live nodes lead to, at their workers, and so on: a second
//   diffusing computation, over when the wave is. Where the roots depend on all that was sent there
//   is no such worker, and SMART costs no message more than FAST.
// - *resume*, only if some worker waits: what no mark has reached gets nothing. Gradients flow
// again.
// - *commit*: each adds the gradients to the context.
//
// A walk that rests at a gate has gradients on their way: its worker answers nothing before. Work
// on leaves that is held back behind one sends nothing: only the pass's end waits for it, in the
// wave before the commit wave.
//
// A pass that fails adds nothing anywhere: those who have committed take their gradients back
// (ContextGradients). A worker that fails, or loses the starter or a worker with which it exchanged
// messages of the pass, tells the starter and these workers, once; so does each that hears it. The
// context remembers the pass as dead: its late messages are refused.
//
// How a pass has ended is its starter's to say: nothing that was kept is changed by what others say
// of it. A worker believes what a pass's name says of former ones when a message of the pass has
// come from the starter. If none has until the check wave, it asks the starter in that wave, which
// refuses a pass that it has not begun, or not by this name. A worker that is told by another one
// that a pass has failed whose gradients it has kept asks the starter too, by passing it on.
class Passes final : public PassWalkListener {
 public:
  Passes(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
         Deadlines& deadlines)
      : options_(options), strand_(strand), sessions_(sessions), deadlines_(deadlines) {}

  void start(ContextRecord& context, PassRequest request);

  // Messages. `context` is null where this worker does not hold it.
  void on_gradients(WorkerId from, ContextRecord* context, Gradients message);
  void on_answered(WorkerId from, const GradientsAnswered& message);
  void on_marks(WorkerId from, ContextRecord* context, const Marks& message);
  void on_marks_answered(WorkerId from, const MarksAnswered& message);
  void on_finish(WorkerId from, ContextRecord* context, const PassFinish& message);
  void on_finished(WorkerId from, const PassFinished& message);
  void on_failed(WorkerId from, ContextRecord* context, const PassFailed& message);

  void on_peer_fenced(WorkerId peer, const Error& why);
  // `peer` leaves, and was told that nothing more is asked of it: what needs it fails.
  void ask_nothing_more(WorkerId peer) { leavers_.insert(peer); }

  // Fails all passes of the context, and counts nothing of it any more: it ends.
  void end_context(const ContextRecord& context, const Error& why);

  // Fails those that started here, and forgets all: the node ends.
  void clear(const Error& why);

  void note_nodes(const CausalId& maker, uint64_t thread, uint64_t from, uint64_t to) {
    makers_.note(maker, {thread, from}, {thread, to});
  }

  [[nodiscard]] uint64_t size() const { return passes_.size(); }
  // Send functions, of all contexts, by the peer that has caused them.
  [[nodiscard]] PeerTally& caused_sends() { return caused_sends_; }
  [[nodiscard]] const PeerTally& caused_sends() const { return caused_sends_; }
  // The most passes, and failed ones that are remembered, that one peer has made known here.
  [[nodiscard]] uint64_t passes_peak() const { return brought_.peak(); }
  [[nodiscard]] uint64_t tallied() const {
    return brought_.total() + told_dead_.total() + caused_sends_.total();
  }
  [[nodiscard]] uint64_t counts_for(WorkerId peer) const {
    return brought_.count(peer) + told_dead_.count(peer) + caused_sends_.count(peer);
  }
  [[nodiscard]] uint64_t dead_peak() const { return told_dead_.peak(); }
  // Turns of walks that have not ended, also of passes that have.
  [[nodiscard]] uint64_t running_walks() const { return running_walks_; }
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string check_invariants() const;
  void set_on_progress(Task task) { on_progress_ = std::move(task); }

  // PassWalkListener.
  void on_gradients_leave(const PassId& pass, LeavingGradients leaving) override;
  void on_marks_leave(const PassId& pass, std::vector<LeavingMark> marks) override;
  void on_gate_opens(const PassId& pass, const OpenedGate& opened, Status status) override;
  void on_walk_rests(const PassId& pass, Status status) override;

 private:
  struct Pass {
    PassName name;
    ContextRecord* context = nullptr;  // of this node's tables; outlives the pass
    bool started_here = false;
    UniqueFunction<void(Status)> done;
    DeadlineId deadline;
    std::optional<WorkerId> brought_by;  // the peer that the pass counts for
    std::set<WorkerId> neighbours;       // with whom messages of the pass were exchanged
    // The starter itself has said here what the pass is called, and so how former ones have ended.
    bool heard_starter = false;
    std::set<WorkerId> askers;  // of a pass started here: they hear of it if it fails

    std::shared_ptr<PassWalk> walk;
    WalkTurn next;             // for the walk
    std::set<CausalId> given;  // send functions that have got their gradients
    Diffusion gradients;
    Diffusion marks;

    std::optional<PassWave> wave;   // the last one; none while gradients flow for the first time
    bool in_wave = false;           // it has not reported to that wave
    std::set<WorkerId> wave_waits;  // who has not reported
    std::optional<WorkerId> wave_parent;
    MaybeError wave_error;
    bool undecided = false;  // here or behind us nodes wait for what may not come
  };

  // Whether a message by which a worker takes part in passes may come from `from`: it has called
  // here in the context, or was called.
  [[nodiscard]] bool takes_part(WorkerId from, const ContextRecord& context) const {
    return from == options_.self || context.peers.contains(from);
  }
  [[nodiscard]] std::optional<Violation> violation_of(WorkerId from, const ContextRecord& context,
                                                      const Gradients& message) const;
  [[nodiscard]] std::optional<Violation> violation_of(WorkerId from, const ContextRecord& context,
                                                      const Marks& message) const;

  // Joining.
  [[nodiscard]] bool admit(WorkerId from, const ContextRecord* context, const PassName& name);
  [[nodiscard]] MaybeError why_refused(WorkerId from, const ContextRecord* context,
                                       const PassName& name) const;
  Pass& begin(ContextRecord& context, const PassName& name);
  // The pass that a message of `from` belongs to, by this field, which may begin here; null: it has
  // failed, or may not begin.
  [[nodiscard]] Pass* join(WorkerId from, ContextRecord& context, const PassName& name,
                           std::string_view field);
  // The starter has said the pass's name. False: the pass has failed.
  [[nodiscard]] bool hear_starter(Pass& pass);
  // Whether `from` is the starter, in the life that started the pass.
  [[nodiscard]] bool is_starter(WorkerId from, const PassName& name) const {
    return from == name.starter && !started_by_other_life(name);
  }
  [[nodiscard]] Error too_many(std::string_view what, WorkerId whose) const;
  void make_walk(Pass& pass, std::vector<WalkRoot> roots);
  [[nodiscard]] bool started_by_other_life(const PassName& name) const;

  // Gradients and marks.
  void take_in(Pass& pass, WorkerId from, Gradients message);
  void take_in(Pass& pass, WorkerId from, const Marks& message);
  void engage(Pass& pass, Diffusion& diffusion, WorkerId from, Message answer);
  void go_on(Pass& pass);
  void settle(Pass& pass);
  [[nodiscard]] MaybeError why_unreachable(const Pass& pass, WorkerId peer) const;

  // The end.
  void start_wave(Pass& pass, PassWave wave);
  void join_wave(Pass& pass, PassWave wave);
  [[nodiscard]] bool own_part_done(const Pass& pass) const;
  void settle_wave(Pass& pass);
  void start_next_wave(Pass& pass);
  [[nodiscard]] MaybeError why_incomplete(const Pass& pass) const;
  [[nodiscard]] Status commit(Pass& pass);
  [[nodiscard]] bool takes_back() const {
    return !options_.mutants.on(Mutant::committed_not_taken_back);
  }
  void fail(Pass& pass, const Error& why);
  void on_own_failed(WorkerId from, const ContextRecord& context, const PassFailed& message);
  void ask_starter(const ContextRecord& context, const PassFailed& message);
  [[nodiscard]] bool remember_dead(std::optional<WorkerId> told_by, ContextRecord& context,
                                   const PassId& pass, const Error& why);
  void end(Pass& pass, const Status& status);

  void send(Pass& pass, WorkerId to, Message message);
  void send(Pass& pass, WorkerId to, Message message, SendOptions options);
  [[nodiscard]] Error protocol_error(WorkerId peer, const std::string& what) const;
  [[nodiscard]] const std::string& name(WorkerId id) const { return options_.names[id.value]; }

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  NodeMakers makers_;
  NodeTurns turns_;
  std::map<PassId, Pass> passes_;
  uint64_t running_walks_ = 0;
  PeerTally brought_;    // passes, by the peer whose message was the first of each
  PeerTally told_dead_;  // of all contexts: ContextRecord::told_dead
  PeerTally caused_sends_;
  Task on_progress_;
  std::set<WorkerId> leavers_;
};

}  // namespace rehearsal
