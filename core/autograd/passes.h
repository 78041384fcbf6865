#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/autograd/context_record.h"
#include "core/autograd/node_makers.h"
#include "core/autograd/node_turns.h"
#include "core/autograd/pass_walk.h"
#include "core/calls/deadlines.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;
struct SendOptions;

// A backward pass that is about to start here.
struct PassRequest {
  std::vector<WalkRoot> roots;
  bool retain_graph = false;
  std::optional<Instant> deadline;
  UniqueFunction<void(Status)> done;  // once; on the strand
};

// The backward passes that this worker takes part in, in FAST mode: every send function of the
// context is expected to get a gradient. On the strand; nothing in it parks.
//
// Gradient messages are a diffusing computation (Dijkstra and Scholten 1980): the message that
// engages an idle worker is answered when the worker rests and its own messages are answered, any
// other at once; so the starter learns when no gradient is on its way any more. Then two waves go
// over the workers of the context (echo algorithm; Chang 1982): in the first each looks whether all
// its send functions have got gradients; in the second each adds the gradients to the context. So a
// pass that fails adds nothing anywhere, unless a worker is lost in the second wave, after which
// no pass in that context can succeed.
//
// A worker that fails, or loses the starter or a worker with which it exchanged messages of the
// pass, tells the starter and these workers, once; so does each that hears it. The context
// remembers the pass as dead: its late messages are refused.
class Passes final : public PassWalkListener {
 public:
  Passes(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
         Deadlines& deadlines)
      : options_(options), strand_(strand), sessions_(sessions), deadlines_(deadlines) {}

  void start(ContextRecord& context, PassRequest request);

  // Messages. `context` is null where this worker does not hold it.
  void on_gradients(WorkerId from, ContextRecord* context, Gradients message);
  void on_answered(WorkerId from, const GradientsAnswered& message);
  void on_finish(WorkerId from, ContextRecord* context, const PassFinish& message);
  void on_finished(WorkerId from, const PassFinished& message);
  void on_failed(ContextRecord* context, const PassFailed& message);

  void on_peer_fenced(WorkerId peer, const Error& why);
  // `peer` leaves, and was told that nothing more is asked of it: what needs it fails.
  void ask_nothing_more(WorkerId peer) { leavers_.insert(peer); }

  // Fails all passes of the context: it ends.
  void end_context(const ContextRecord& context, const Error& why);

  // Fails those that started here, and forgets all: the node ends.
  void clear(const Error& why);

  void note_nodes(const CausalId& maker, uint64_t thread, uint64_t from, uint64_t to) {
    makers_.note(maker, {thread, from}, {thread, to});
  }

  [[nodiscard]] uint64_t size() const { return passes_.size(); }
  // Turns of walks that have not ended, also of passes that have.
  [[nodiscard]] uint64_t running_walks() const { return running_walks_; }
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] std::string check_invariants() const;
  void set_on_progress(Task task) { on_progress_ = std::move(task); }

  // PassWalkListener.
  void on_gradients_leave(const PassId& pass, const GradientRoute& route,
                          std::vector<at::Tensor> gradients) override;
  void on_walk_rests(const PassId& pass, Status status) override;

 private:
  enum class Stage : uint8_t { gradients, checked, committed };

  struct Pass {
    PassName name;
    ContextRecord* context = nullptr;  // of this node's tables; outlives the pass
    bool started_here = false;
    UniqueFunction<void(Status)> done;
    DeadlineId deadline;
    std::set<WorkerId> neighbours;  // with whom messages of the pass were exchanged

    std::shared_ptr<PassWalk> walk;
    std::vector<Delivery> arrived;  // for the walk's next turn
    std::set<CausalId> given;       // send functions that have got their gradients
    uint64_t unanswered = 0;        // gradient messages that we sent
    std::optional<std::pair<WorkerId, AutogradMessageId>> engaged_by;

    Stage stage = Stage::gradients;
    std::set<WorkerId> wave_waits;  // who has not reported
    std::optional<WorkerId> wave_parent;
    MaybeError wave_error;
  };

  // Joining.
  [[nodiscard]] bool admit(WorkerId from, const ContextRecord* context, const PassName& name);
  Pass& pass_of(ContextRecord& context, const PassName& name);
  void make_walk(Pass& pass, std::vector<WalkRoot> roots);

  // Gradients.
  void take_in(Pass& pass, WorkerId from, Gradients message);
  void take_turn(Pass& pass);
  void settle(Pass& pass);
  [[nodiscard]] bool started_by_other_life(const PassName& name) const;

  // The end.
  void start_wave(Pass& pass, Stage stage);
  void join_wave(Pass& pass, Stage stage);
  void settle_wave(Pass& pass);
  [[nodiscard]] MaybeError why_incomplete(const Pass& pass) const;
  void commit(Pass& pass);
  void fail(Pass& pass, const Error& why);
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
  Task on_progress_;
  std::set<WorkerId> leavers_;
};

}  // namespace rehearsal
