#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/api/worker.h"
#include "core/autograd/contexts.h"
#include "core/base/codec.h"
#include "core/calls/gatherings.h"
#include "core/calls/pending_calls.h"
#include "core/calls/served_calls.h"
#include "core/groups/group.h"
#include "core/node/hello.h"
#include "core/node/node.h"
#include "core/rref/published_names.h"
#include "core/rref/rref_context.h"
#include "core/session/session.h"
#include "core/values/device_table.h"
#include "core/wire/protobuf_codec.h"

namespace rehearsal {

// All of a node, by value, in the order in which it depends on each other. Routes what the
// sessions report.
class NodeParts final : public SessionListener, public WorkerPort, public NodeView {
 public:
  NodeParts(NodeOptions options, const Program& program, Node::Environment environment);

  // SessionListener.
  void on_message(WorkerId from, Message&& message) override;
  void on_peer_joined(const Hello& hello) override;
  void on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why) override;
  [[nodiscard]] Status check_hello(const Hello& hello) override;
  [[nodiscard]] bool may_have_left(WorkerId peer) const override;
  void on_hello_refused(WorkerId peer, const Error& why) override;

  // WorkerPort.
  [[nodiscard]] DebugInfo debug_info() const override;
  [[nodiscard]] std::vector<WorkerId> members() const override { return group->members(); }
  [[nodiscard]] UniqueFunction<void(const Error&)> await_member(
      WorkerId peer, const std::optional<Instant>& deadline, const WaitHandle& wait,
      Status& came) override;
  void leave_at_once() override { leaves_at_once = true; }
  [[nodiscard]] std::shared_ptr<Execution> begin_thread(const std::string& name) override;
  [[nodiscard]] bool is_dynamic() const override { return program.is_dynamic(); }

  // NodeView.
  [[nodiscard]] bool quiet(uint32_t phase) const override;
  [[nodiscard]] std::string left() const override;
  void release_references() override;
  void keep_references() override;
  void refuse_calls() override;
  [[nodiscard]] uint64_t activity() const override { return activity_; }
  void ask_nothing_more(WorkerId peer) override { contexts.ask_nothing_more(peer); }
  [[nodiscard]] bool asked(WorkerId peer) const override;
  [[nodiscard]] bool awaits(WorkerId peer) const override;
  [[nodiscard]] bool holds_nothing() const override;

  [[nodiscard]] Status run_main();
  [[nodiscard]] Status outlived();
  [[nodiscard]] Error consider_another_life(Error why);
  void abort(const Error& why);
  void kill();
  [[nodiscard]] NodeCensus census() const;
  // A line for each lost worker for which something still counts; empty if nothing does.
  [[nodiscard]] std::string kept_for_the_lost() const;
  [[nodiscard]] PeerPeaks peaks() const;
  [[nodiscard]] WaitViews waits() const;
  [[nodiscard]] ValueViews values(std::type_index type) const;

  // Once the node has ended.
  [[nodiscard]] std::vector<HeldValue> values_left();
  void drop_states();

  const NodeOptions options;
  const Program& program;
  const Node::Environment environment;
  const SessionOptions session_options;
  const Greeting greeting;
  const std::shared_ptr<NodeStrand> strand;
  const std::unique_ptr<Codec> codec;
  DeviceTable devices;
  const std::shared_ptr<Execution> main;
  const ExceptionEncoder exceptions;
  Deadlines deadlines;
  Sessions sessions;
  PendingCalls pending;
  ServedCalls served;
  RRefContext rrefs;
  AutogradContexts contexts;
  const std::unique_ptr<Group> group;
  Gatherings gatherings;
  PublishedNames published;
  const std::shared_ptr<Caller> caller;
  Worker worker;
  WorkerStates states;
  bool states_have_ended = false;
  bool ended = false;
  std::optional<NodeCensus> census_at_end;
  bool leaves_at_once = false;  // written by the main, read when it has returned
  bool starts_again = false;    // written when the worker has failed

 private:
  // Before anybody is served.
  [[nodiscard]] Status make_states();
  void end_states(std::shared_ptr<WorkerStates> states);
  void release_all_references();
  [[nodiscard]] Status join();
  [[nodiscard]] Status shut_down();
  [[nodiscard]] std::unique_ptr<Group> make_group();
  void end(const Error& why);
  void progressed();
  struct Router;  // what handles which message
  void route(WorkerId from, Message& message);

  // Whether something runs here or is waited for, but for the main.
  [[nodiscard]] bool is_busy() const;
  void look_for_late_references();
  void note_leaks(const std::vector<std::string>& left);
  [[nodiscard]] MaybeError why_leaked() const;

  uint64_t activity_ = 0;
  bool released_ = false;                    // of what the program left: all that it held then
  bool leaks_count_ = true;                  // what is left then is told
  DeadlineId last_moment_;                   // of references that are about to be let go
  std::vector<std::string> leaks_;           // a line for each thing that was held at the shutdown
  std::map<std::string, uint64_t> threads_;  // so many of each name were registered
  std::vector<uint32_t> least_lives_;        // by worker: one more than that of the latest we met
  std::vector<Duration> peer_timeouts_;      // by worker: of the latest we met
};

}  // namespace rehearsal
