#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/codec.h"
#include "core/base/interval_set.h"
#include "core/base/node_strand.h"
#include "core/base/ring.h"
#include "core/base/transport.h"
#include "core/base/wait_view.h"
#include "core/session/authority.h"
#include "core/session/device_loans.h"
#include "core/session/session_options.h"
#include "core/wire/message.h"

namespace rehearsal {

// The reports of the sessions; on the strand.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  virtual void on_message(WorkerId from, Message&& message) = 0;
  // A session with a new incarnation of `peer` stands.
  virtual void on_peer_joined(const Hello& hello) = 0;
  // That incarnation is over for us: it will say nothing more, and we nothing to it.
  virtual void on_peer_fenced(WorkerId peer, Incarnation incarnation, const Error& why) = 0;
  // Whether a peer that says this may talk to us. Of kind fenced: this is over, but a later life of
  // the same worker may.
  [[nodiscard]] virtual Status check_hello(const Hello& hello) = 0;
  // Whether this peer may have ended in good order without our having been told yet.
  [[nodiscard]] virtual bool may_have_left(WorkerId peer) const = 0;
  virtual void on_hello_refused(WorkerId peer, const Error& why) = 0;
};

// The tensors that a message carries by reference. If one is changed in place before the message
// is sent, or is sent again, `instead` goes in its place.
struct CarriedTensors {
  std::vector<CarriedTensor> tensors;
  Message instead;
  // `instead` went; because a device has failed before it had copied the tensors, if `failure` says
  // so.
  UniqueFunction<void(const std::optional<std::string>& failure)> on_changed;
  [[nodiscard]] bool have_changed() const {
    return std::any_of(tensors.begin(), tensors.end(), std::mem_fn(&CarriedTensor::has_changed));
  }
};

// How a message is sent.
struct SendOptions {
  bool waits_for_room = false;  // calls and streams do; answers and control messages never
  bool of_shutdown = false;     // not counted by all_acknowledged
  bool on_large_lane = false;   // behind the large ones, however small it is
  std::unique_ptr<CarriedTensors> carried;  // null: none
  Task on_acknowledged;                     // the peer's session has it
  Task on_withdrawn;  // it was never handed to the transport, and never will be
};

// Exactly-once delivery of messages between this incarnation and each peer's, while both live, in
// the order of sending on each of the two lanes only: sequence numbers, acknowledgements on data
// frames, resending after reconnect, and de-duplication at the receiver. Also judges silence,
// refused connections, and links that break again and again before anything has passed. Messages to
// oneself take the same path, without a transport. On the strand.
class Sessions final : public FrameSink {
 public:
  Sessions(SessionOptions options, NodeStrand& strand, Transport& transport, Codec& codec,
           SessionListener& listener);

  // Links to every other worker, and starts to judge silence.
  void start();

  // Takes a message. To a peer that is fenced it is dropped (and `on_withdrawn` runs). It is sent
  // once the devices have copied its tensors, or begin to (DeviceCopies): others may overtake it
  // until then.
  void send(WorkerId to, Message message, SendOptions options = {});

  // A peer has given back what this worker had lent it.
  void on_returned(WorkerId from, const LoansReturned& returned);

  // Takes back a call that still waits for room (`on_withdrawn` runs); false if it is on its way.
  bool withdraw(WorkerId to, const CallId& call);

  // Ends the pair of incarnations: each side refuses the other from now on.
  void fence(WorkerId peer, const Error& why);

  // Fences a peer that broke the protocol, with an error that names the field of its message.
  void accuse(WorkerId peer, const Violation& violation);
  // How a message of `from` breaks the protocol, as far as it shows by itself.
  [[nodiscard]] std::optional<Violation> judge(WorkerId from, const Message& message) const;

  // Whether so much is on its way to the peer that no answer is to be made for it meanwhile: it
  // does not read (PeerLimits::unread_bytes).
  [[nodiscard]] bool leaves_unread(WorkerId peer) const;
  // Whether any message to it waits: for room, its copies, or its receiver.
  [[nodiscard]] bool any_waits(WorkerId peer) const;
  // Runs when a peer has acknowledged something, or is lost.
  void set_on_read(UniqueFunction<void(WorkerId)> task) { on_read_ = std::move(task); }

  // Why `peer` cannot be reached for good, if so.
  [[nodiscard]] const MaybeError& lost(WorkerId peer) const;
  // Why nothing new may be asked of it, if so: it is lost, or leaves.
  [[nodiscard]] const MaybeError& unavailable(WorkerId peer) const;
  // From now on nothing new may be asked of this incarnation of `peer`.
  void ask_nothing_new(WorkerId peer, const Error& why);
  // This incarnation of `peer` has said that it has met us and all others: what waited for that
  // goes. Should we be lost, it will hear of it, and end what waits for us.
  void begin_to_serve(WorkerId peer);
  [[nodiscard]] bool joined(WorkerId peer) const;
  [[nodiscard]] Incarnation incarnation(WorkerId peer) const;
  [[nodiscard]] std::vector<Incarnation> fenced() const;
  // The workers that are lost and have not come back, in rank order.
  [[nodiscard]] std::vector<WorkerId> lost_workers() const;

  // Whether nothing that `peer` sent before what arrived last is still on its way.
  [[nodiscard]] bool all_received(WorkerId peer) const;

  // All that `peer` has sent with lower numbers has been received; the highest number of all that
  // has.
  [[nodiscard]] uint64_t first_missing(WorkerId id) const { return peer(id).received.base(); }
  [[nodiscard]] uint64_t highest_received(WorkerId peer) const;
  // The most frames that were missing of one peer while later ones had come.
  [[nodiscard]] uint64_t gaps_peak() const { return gaps_peak_; }

  // This incarnation of `peer` takes whoever is silent for so long for dead: an idle link to it
  // says four times as often that we live, or as often as our own options say. Zero: it has not
  // told.
  void set_peer_timeout(WorkerId peer, Duration peer_timeout);

  // The peer has said that it leaves: its silence is no failure.
  void expect_silence(WorkerId peer);

  // Acknowledges at once from now on: a shutdown waits for it.
  void acknowledge_at_once() { acknowledges_at_once_ = true; }

  // True when every frame sent to a living peer is acknowledged, those of the shutdown aside.
  [[nodiscard]] bool all_acknowledged() const;

  // True when every frame is, and all acknowledgements owed are out.
  [[nodiscard]] bool flushed() const;
  [[nodiscard]] uint64_t unacknowledged() const;
  [[nodiscard]] std::vector<OwedAcknowledgement> owed_acknowledgements() const;
  // Tensors that peers have borrowed, and not given back.
  [[nodiscard]] uint64_t loans() const { return loans_.size(); }
  // Of the unacknowledged ones, those by which workers come together and part.
  [[nodiscard]] uint64_t unacknowledged_of_group() const;

  // Runs when all_acknowledged may have become true.
  void set_on_progress(Task task) { on_progress_ = std::move(task); }

  // Runs now and then, when silence has been judged.
  void set_on_tick(Task task) { on_tick_ = std::move(task); }

  // Runs when a link to a peer stands, in a session that stood before or in a new one.
  void set_on_link(UniqueFunction<void(WorkerId)> task) { on_link_ = std::move(task); }

  // Whether a link to it stands now: if its process has ended, it does not for long.
  [[nodiscard]] bool linked(WorkerId peer) const;

  // Of one that was lost: whether it went as a process does that has ended, so that its next life
  // may come. Not if it was given up for what it said, or has given us up.
  [[nodiscard]] bool may_come_again(WorkerId id) const { return peer(id).has_died; }

  // Why `peer` does not take part, as far as it shows, for people: "never met", "at
  // 10.0.0.4:4711, refuses since 12 s", "silent for 40 s". Empty: its link stands, and it says
  // something now and then.
  [[nodiscard]] std::string absence(WorkerId peer) const;

  // Nothing is sent or received any more.
  void stop();

  // FrameSink.
  [[nodiscard]] Position position(WorkerId peer) const override;
  void on_peer_up(const Hello& hello) override;
  void on_frame(WorkerId peer, Frame frame) override;
  void on_peer_lost(WorkerId peer, const Error& why, bool closed_by_peer) override;
  void on_drained(WorkerId peer) override;
  void on_refused(WorkerId peer, const Refusals& refusals) override;

 private:
  // On a paced link so many small messages leave once one has arrived, and so many are acknowledged
  // at a time.
  static constexpr uint64_t kFewMessages = 4;

  struct Unacked {  // a frame that is not acknowledged
    uint64_t sequence = 0;
    Lane lane{};
    bool on_large_lane = false;  // however small it is
    bool of_shutdown = false;
    bool of_group = false;
    bool is_answer = false;
    bool replaced = false;  // by `instead`, which may go on another lane
    bool sent = false;      // on this link; of a paced one
    bool is_told = true;    // what leaves after it waits for word of its arrival; the same
    bool arrived = false;   // the peer has said so, though not yet acknowledged it; the same
    std::shared_ptr<const FrameBody> body;
    std::unique_ptr<CarriedTensors> carried;
    Task on_acknowledged;
  };
  // One lane of a paced link.
  struct Pace {
    uint64_t next = 0;  // the first number that has not had its turn
    uint64_t seen = 0;  // up to here it is known what has arrived
    uint64_t room = 0;  // so many more messages may leave
  };
  // The present link, or the last one. See Note [Links that do not live long].
  struct LinkState {
    bool up = false;
    bool paced = false;          // it was made again: little leaves at a time
    bool proven = false;         // a message that left on it has arrived
    bool open = false;           // more than one message may be on their way
    uint64_t awaited = 0;        // messages that left on it, and are not known to have arrived
    uint64_t resends_below = 0;  // messages below this number were there before it
    uint64_t arrived_messages = 0;
    uint64_t told_soon = 0;     // of so many the peer is told before long
    uint64_t trust = 0;         // so many messages have arrived since the position before this one
    uint64_t largest_sent = 0;  // the bytes of the largest message that left on it
    std::array<Pace, 2> paces;  // by lane
  };
  // The refusals of its port since a link to it stood.
  struct Refused {
    Instant since;
    Instant last;
    std::string at;
  };
  struct Queued {  // a message that waits for room
    Message message;
    SendOptions options;
  };
  // A message that leaves while devices copy the rest of its tensors.
  struct Filling {
    WorkerId to;
    Incarnation life;
    uint64_t sequence = 0;
    std::shared_ptr<DeviceCopies> copies;
    std::shared_ptr<const uint64_t> filled;
  };
  struct Peer {
    Incarnation incarnation;  // zero: not met yet
    LinkState link;
    bool serves = false;
    bool may_be_silent = false;
    bool suspected = false;
    bool has_died = false;  // as far as it can be seen
    MaybeError lost;
    MaybeError leaves;
    std::optional<Refused> refused;
    uint64_t next_sequence = 1;
    Ring<Unacked> unacked;
    uint64_t unacked_bytes = 0;
    uint64_t unacked_of_shutdown = 0;
    uint64_t unacked_of_group = 0;
    uint64_t unread_answers = 0;
    std::array<std::list<Queued>, 2> queued;  // by lane: small calls do not wait for large ones
    [[nodiscard]] size_t queued_count() const { return queued[0].size() + queued[1].size(); }
    IntervalSet received{1};
    uint64_t acknowledged_to_peer = 0;  // what it was last told
    uint64_t unanswered_frames = 0;     // received since then
    bool acknowledgement_due = false;   // its timer runs
    TimerId acknowledgement_timer{};
    std::array<uint64_t, 2> last_received{};  // by lane: as FrameHeader::received
    std::array<uint64_t, 2> last_arrived{};   // of ours, as far as the peer has told
    uint64_t arrived_before = 0;  // the small lane's, when the peer last told its position
    uint64_t links = 0;           // so far
    uint64_t futile_links = 0;    // that broke in a row before anything new had passed either way
    uint64_t futile_bytes = 0;    // of the largest message that was on its way when they did
    Instant progressed{};         // when something new had passed
    Instant heard{};
    Instant spoke{};
    Duration heartbeat{};  // an idle link says so this often; zero: as the options say
  };

  [[nodiscard]] Peer& peer(WorkerId id) {
    REHEARSAL_CHECK(id.value < peers_.size(), id);
    return peers_[id.value];
  }
  [[nodiscard]] const Peer& peer(WorkerId id) const {
    REHEARSAL_CHECK(id.value < peers_.size(), id);
    return peers_[id.value];
  }
  [[nodiscard]] bool has_room(const Peer& peer, Lane lane) const;
  [[nodiscard]] bool may_send(const Peer& peer, const Message& message) const;
  // Whether one of these, from before it, is a call by the same handle of order.
  [[nodiscard]] bool is_behind(const Message& message, std::list<Queued>::const_iterator first,
                               std::list<Queued>::const_iterator last) const;
  [[nodiscard]] bool is_unknown_to_its_owner(const Fork& fork) const;
  void drop_unsent(Queued&& message);
  void admit_to_all();
  [[nodiscard]] static bool has_copies(const Message& message);
  [[nodiscard]] bool is_being_copied(const Message& message) const;
  // Whether devices have copied enough of its tensors for it to leave.
  [[nodiscard]] bool is_ready(const Message& message) const;
  void await_copies();
  void look_at_copies();
  void note_loans(WorkerId to, const Message& message);
  void leave_while_copied(WorkerId to, const Message& message, uint64_t sequence, FrameBody& body);
  void look_at_filling();
  void give_up_filling(const Filling& failed);
  void transmit_or_instead(WorkerId id, Queued&& message);
  void send_to_self(const Message& message, SendOptions&& options);
  void transmit_new(WorkerId id, const Message& message, SendOptions&& options);
  void count_answer(WorkerId id, Unacked& unacked, const Message& message);
  void transmit(WorkerId id, const Unacked& unacked);
  void transmit_bare(WorkerId id, FrameKind kind);
  [[nodiscard]] FrameHeader header_to(Peer& to, FrameKind kind, uint64_t sequence);
  void begin_link(const Hello& hello, bool again);
  void send_more(WorkerId id);
  bool resend(WorkerId id, Unacked& unacked);
  void take_position(Peer& from, const std::array<uint64_t, 2>& received);
  void open_up(Peer& to) const;
  void note_arrival(Peer& from, Unacked& unacked) const;
  void note_progress(Peer& from);
  void note_futile_link(Peer& from);
  [[nodiscard]] std::shared_ptr<CarriedTensors> replace_if_changed(Peer& to, Unacked& unacked);
  [[nodiscard]] std::shared_ptr<CarriedTensors> replace(Peer& to, Unacked& unacked);
  void admit_queued(WorkerId id);
  void refuse(const Hello& hello, const Error& why);
  void begin_session(const Hello& hello);
  void end_session(WorkerId id, const Error& why);
  // Closes the link; the other side hears why.
  void tell_fenced(WorkerId id, const std::string& text);
  [[nodiscard]] static bool is_possible(const Peer& from, uint64_t acknowledged,
                                        const std::array<uint64_t, 2>& received);
  void take_acknowledgement(WorkerId id, uint64_t acknowledged);
  void owe_acknowledgement(WorkerId id, Lane lane);
  void receive_message(WorkerId id, const Frame& frame);
  void drop_frame(WorkerId id, std::string_view why);
  void judge_silence();
  void judge(WorkerId id);
  void give_up(WorkerId id, const std::string& why);
  void progressed();
  [[nodiscard]] Duration heartbeat_to(const Peer& to) const;
  [[nodiscard]] Duration own_tick() const;
  void set_tick_timer(Instant now);

  const SessionOptions options_;
  NodeStrand& strand_;
  Transport& transport_;
  Codec& codec_;
  SessionListener& listener_;
  std::vector<Peer> peers_;  // by id; our own entry is unused
  std::set<Incarnation> fenced_;
  uint64_t gaps_peak_ = 0;
  uint64_t to_self_ = 0;               // messages to ourselves on their way
  bool some_may_not_be_sent_ = false;  // of the messages that are held
  std::list<Queued> copied_to_self_;   // messages to ourselves whose tensors are being copied
  std::vector<Filling> filling_;       // to others
  DeviceLoans loans_;
  std::optional<TimerId> copies_timer_;  // also of what is to be given back
  Duration copies_pause_{};              // until they are looked at again
  bool acknowledges_at_once_ = false;
  bool stopped_ = false;
  std::optional<Instant> tick_due_;  // when silence is judged next; none before the start
  TimerId tick_timer_{};
  Task on_progress_;
  Task on_tick_;
  UniqueFunction<void(WorkerId)> on_link_;  // null: nobody is told
  UniqueFunction<void(WorkerId)> on_read_;  // null: nobody is told
};

}  // namespace rehearsal
