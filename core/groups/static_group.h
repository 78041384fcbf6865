#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/calls/deadlines.h"
#include "core/groups/group.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;

// The static group: how it comes together and how it ends. On the strand.
//
// Join: each worker that has a session with every other says Ready to all; who has heard it from
// all has joined. A worker that dies meanwhile is waited for: its next life is met, and says Ready,
// as it would have been and done itself. One that waits for long tells those whom it has met whom
// else it has (GroupView): each can say who is missing, be it that another one misses it.
//
// Graceful shutdown (termination detection by two waves; Mattern 1987): a worker whose main has
// returned serves on. The first living worker in rank order collects reports. When all living
// workers have arrived it tells them, and the time that the rest may take begins. When all are
// quiet, and agree on who is lost, it asks again; if nobody was active in between, nothing can be
// in flight, because a quiet worker's frames are acknowledged. That is done once for calls (phase
// 0), whereupon each releases its references, and once for these (phase 1), whereupon all leave. If
// a worker comes back meanwhile, the group works again, and begins with calls once more: phases
// count on from twice the number of lives that have been before the present ones, which all who
// have met the same lives know, so that who has not is told from who has.
//
// Its members believe each other: a coordinator that all have arrived and are quiet, each worker
// that it is quiet itself. A false coordinator can begin the end, and dismiss those that have
// released and are quiet, as soon as they have arrived. Others cannot: what they say of phases
// counts when all living workers have reported, and of references only at a worker that a former
// coordinator has asked, or that has lived before (SECURITY.md). One that a mad coordinator has
// told of the end of calls, and that outlives it, goes back to calls with the others.
class StaticGroup final : public Group {
 public:
  StaticGroup(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
              Deadlines& deadlines, NodeView& view);

  // `done` when all have joined, or why they cannot.
  void join(Duration timeout, UniqueFunction<void(Status)> done) override;

  // `done` when all have left, or why not: who is busy, or was lost and did not come back. The time
  // runs once all workers have arrived: those that live may work for as long as they like.
  void shut_down(Duration timeout, UniqueFunction<void(Status)> done) override;

  void on_peer_joined(WorkerId peer, uint32_t life) override;
  void on_peer_fenced(WorkerId peer, const Error& why) override;
  void on_hello_refused(WorkerId peer, const Error& why) override;
  [[nodiscard]] bool may_have_left(WorkerId peer) const override;
  bool on_message(WorkerId from, const Message& message) override;
  [[nodiscard]] bool takes_calls() const override { return !leaving_; }
  void progressed() override;
  void on_tick() override;
  void on_link(WorkerId peer) override { arrivals_.arrived(peer); }
  void fail(const Error& why) override;

  // Once the group has agreed to end.
  [[nodiscard]] MaybeError refuses(const std::string& newcomer) const override;
  [[nodiscard]] std::vector<WorkerId> members() const override { return living(); }
  uint64_t when_here(WorkerId worker, UniqueFunction<void()> here) override;
  void forget_task(uint64_t number) override { arrivals_.forget(number); }
  [[nodiscard]] uint64_t awaited_members() const override { return arrivals_.size(); }
  [[nodiscard]] std::string describe() const override;

 private:
  void on_ready(WorkerId from);
  void on_view(WorkerId from, const GroupView& view);
  void on_goodbye(WorkerId from, const Error& why);
  void on_report(WorkerId from, const ShutdownReport& report);
  void on_probe(WorkerId from, const ShutdownProbe& probe);
  void on_leave(WorkerId from);
  [[nodiscard]] WorkerId coordinator() const;
  [[nodiscard]] std::vector<WorkerId> living() const;
  [[nodiscard]] std::vector<WorkerId> missing() const;
  [[nodiscard]] std::string describe_missing() const;
  [[nodiscard]] std::string names_of(const std::vector<WorkerId>& workers) const;
  [[nodiscard]] Error join_timed_out() const;
  void tell_whom_we_met();
  [[nodiscard]] std::string missing_from_shutdown() const;
  [[nodiscard]] std::string left() const;
  [[nodiscard]] ShutdownReport report_now(uint64_t wave) const;
  void settle_join();
  void finish_join(Status status);
  void report(uint64_t wave);
  void recheck();
  void settle_phases(WorkerId reporter);
  void catch_up();
  [[nodiscard]] bool can_have_begun(uint32_t phase) const;
  [[nodiscard]] bool goes_back_to(uint32_t phase) const;
  [[nodiscard]] bool have_reported(const std::vector<WorkerId>& workers) const;
  void coordinate();
  void on_all_arrived();
  void start_wave();
  void tell_others(const Message& message);
  void finish_phase();
  void enter_phase(uint32_t phase);
  void set_phase(uint32_t phase);
  [[nodiscard]] uint32_t first_phase() const;
  [[nodiscard]] uint64_t lives_of_living() const;
  [[nodiscard]] bool must_be_told(const ShutdownReport& report) const;
  [[nodiscard]] bool quiet() const { return view_.quiet(phase_ % 2); }
  void leave();
  void settle_leaving();
  void finish_shutdown(Status status);
  void group_changed(WorkerId worker);

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  NodeView& view_;

  // Joining.
  uint32_t met_ = 0;          // so many others have a session with us
  std::set<WorkerId> ready_;  // who said so
  bool told_ready_ = false;
  bool joined_ = false;
  std::vector<MetMember> told_met_;            // others have been told so last
  std::vector<std::vector<WorkerId>> misses_;  // by worker: whom it has not met, when it last said
  UniqueFunction<void(Status)> join_done_;
  DeadlineId join_deadline_;
  DeadlineId half_time_;

  // Shutting down.
  bool arrived_ = false;
  bool all_arrived_ = false;
  bool leaving_ = false;
  bool check_due_ = false;
  DeadlineId linger_deadline_;
  std::vector<uint32_t> lives_;  // the present one of each worker, as far as we have met it
  uint32_t phase_ = 0;           // even: calls; odd: references
  std::optional<ShutdownReport> last_report_;
  std::optional<WorkerId> may_dismiss_;         // was told last that we are quiet and have released
  std::optional<uint32_t> quiet_in_;            // the last phase in which a wave was told so
  std::map<WorkerId, ShutdownReport> reports_;  // at the coordinator: the latest of each
  std::map<WorkerId, ShutdownReport> first_wave_;  // what they were when the wave started
  std::set<WorkerId> wave_answers_;
  uint64_t wave_ = 0;  // zero: none runs
  uint64_t next_wave_ = 1;
  UniqueFunction<void(Status)> shutdown_done_;
  Duration shutdown_timeout_{};
  DeadlineId shutdown_deadline_;
  std::vector<std::pair<WorkerId, Error>> lost_;  // peers that are, in the order of their loss
  Arrivals arrivals_;
};

}  // namespace rehearsal
