#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/calls/deadlines.h"
#include "core/groups/group.h"
#include "core/session/session_options.h"

namespace rehearsal {

class Sessions;

// A group whose workers come and go at any time, each on its own. On the strand.
//
// Join: worker 0 founds the group in its first life. Every other newcomer makes a session with
// every worker that it finds, and each tells the other whom it has met (GroupView). It has joined
// when one of them is a member, and each worker that any of them has met has met it too, or is
// lost: who has joined before is then known to it, and it to them. Of two that join at once the
// later to meet a common member learns of the earlier there. A member that loses a worker tells
// those who have not joined yet, so that they do not wait for it. A founder that has come again
// founds the group once more when it has heard of all that were there, and none of them is a
// member: by then they have forgotten what its former life had told them.
//
// Leave: when its main has ended, a worker says so to all (Leaving): from then on they ask it
// nothing new, and say (NothingMore) when they have the answers to what they had asked. When all
// have, those who came meanwhile too, and it has the answers to what itself had asked, it releases
// its references, tells the others that it goes (Leave), and goes. A worker that is lost meanwhile
// is waited for no longer. One that has no main leaves when all that have one have come and
// left, or none of them has been there for as long as a join may take.
//
// Each member is believed about whom it has met: what one says of another cannot be told from the
// truth by a newcomer, which may meet that other one yet. A member that lies, or says nothing,
// keeps newcomers out for the time of their joins, and those that leave for that of their
// shutdowns.
class DynamicGroup final : public Group {
 public:
  // `has_main`: by worker.
  DynamicGroup(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
               Deadlines& deadlines, NodeView& view, std::vector<bool> has_main);

  void join(Duration timeout, UniqueFunction<void(Status)> done) override;
  // The time runs from when it begins to leave.
  void shut_down(Duration timeout, UniqueFunction<void(Status)> done) override;

  void on_peer_joined(WorkerId peer, uint32_t life) override;
  void on_peer_fenced(WorkerId peer, const Error& why) override;
  void on_hello_refused(WorkerId peer, const Error& why) override;
  [[nodiscard]] bool may_have_left(WorkerId peer) const override;
  bool on_message(WorkerId from, const Message& message) override;
  void progressed() override;
  void on_tick() override {}  // A worker that is met is told of at once.
  void on_link(WorkerId peer) override;
  void fail(const Error& why) override;

  // Once this worker has told the others that it goes.
  [[nodiscard]] MaybeError refuses(const std::string& newcomer) const override;
  [[nodiscard]] std::vector<WorkerId> members() const override;
  uint64_t when_here(WorkerId worker, UniqueFunction<void()> here) override;
  void forget_task(uint64_t number) override { arrivals_.forget(number); }
  [[nodiscard]] uint64_t awaited_members() const override { return arrivals_.size(); }
  [[nodiscard]] std::string describe() const override;

 private:
  // How far this worker is with leaving.
  enum class Stage : uint8_t { works, waits_for_mains, drains, releases, goes };
  struct Peer {
    std::optional<uint32_t> life;               // the latest that we have met
    std::optional<std::vector<MetMember>> met;  // whom it has met, when it last said
    bool member = false;
    bool leaves = false;
    bool asks_nothing = false;  // it has said so
    bool told_nothing = false;  // we have
    bool has_left = false;      // in good order, in its latest life
    bool had_left = false;      // when we came: it has refused us
  };

  [[nodiscard]] Peer& peer(WorkerId id) { return peers_[id.value]; }
  [[nodiscard]] const Peer& peer(WorkerId id) const { return peers_[id.value]; }
  [[nodiscard]] std::vector<WorkerId> met() const;
  [[nodiscard]] bool is_member(WorkerId id) const;
  [[nodiscard]] bool is_founder() const;
  [[nodiscard]] bool has_met_member() const;
  [[nodiscard]] std::vector<WorkerId> not_heard() const;
  [[nodiscard]] bool knows(const MetMember& other) const;
  [[nodiscard]] std::vector<WorkerId> missing() const;
  [[nodiscard]] std::string describe_missing() const;
  [[nodiscard]] std::string absence(WorkerId id) const;
  [[nodiscard]] Error join_timed_out() const;
  [[nodiscard]] std::string missing_from_leaving() const;
  void send_view(WorkerId to);
  void settle_join();
  void become_member();
  void finish_join(Status status);
  void on_view(WorkerId from, const GroupView& view);
  void on_leaving(WorkerId from);
  void on_nothing_more(WorkerId from);
  void on_gone(WorkerId from);
  void recheck();
  void answer_leavers();
  void watch_mains();
  [[nodiscard]] bool mains_have_gone() const;
  void begin_to_leave();
  [[nodiscard]] bool drained() const;
  void settle_leaving();
  void tell_all(const Message& message);
  void go();
  void finish_leaving(Status status);

  const SessionOptions& options_;
  NodeStrand& strand_;
  Sessions& sessions_;
  Deadlines& deadlines_;
  NodeView& view_;
  const std::vector<bool> has_main_;
  std::vector<Peer> peers_;  // by worker; our own is unused
  Arrivals arrivals_;
  bool check_due_ = false;

  bool member_ = false;
  UniqueFunction<void(Status)> join_done_;
  DeadlineId join_deadline_;
  Duration join_timeout_{};

  Stage stage_ = Stage::works;
  DeadlineId mains_deadline_;   // for a worker with a main to come; while there is none
  bool no_mains_come_ = false;  // it has passed
  DeadlineId linger_deadline_;  // of the last acknowledgements
  UniqueFunction<void(Status)> leave_done_;
  Duration leave_timeout_{};
  DeadlineId leave_deadline_;
};

}  // namespace rehearsal
