#include "real_net/worker/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/check.h"
#include "real_net/worker/meeting_store.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFirstLook = std::chrono::milliseconds(2);
constexpr auto kLooksApart = std::chrono::milliseconds(100);
constexpr char kGone[] = "gone";  // instead of a record

Error failure(ErrorKind kind, std::string text) { return {.kind = kind, .text = std::move(text)}; }

}  // namespace

// One life of one worker in one group.
class Rendezvous::Meeting {
 public:
  explicit Meeting(const RendezvousOptions& options)
      : options_(options), deadline_(Clock::now() + options.timeout) {}

  Result<uint32_t> enter() {
    return try_to<uint32_t>([this]() -> Result<uint32_t> {
      auto opened = MeetingStore::open(options_.placement, options_.names, deadline_);
      if (!opened.ok()) return opened.error();
      store_ = std::move(opened).value();
      return claim();
    });
  }

  Result<Members> meet(const MemberRecord& self) {
    return try_to<Members>([&]() -> Result<Members> {
      REHEARSAL_CHECK(store_ != nullptr);
      store_->set(member_key(rank()), encode(self));
      if (!forms_) store_->add(changes_key(), 1);
      Result<Members> met = forms_ ? meet_all() : look();
      if (!met.ok() && forms_) tell_others(met.error());
      return met;
    });
  }

  void leave(bool with_all) {
    (void)try_to<Unit>([&]() -> Result<Unit> {
      const bool lasts = rank() == 0 || !MeetingStore::served_by_worker(options_.placement);
      if (!options_.dynamic) {
        if (with_all && lasts) end_group();
      } else if (lasts || MeetingStore::reachable(options_.placement)) {
        store_->set(member_key(rank()), kGone);
        store_->add(changes_key(), 1);
        if (alone()) end_group();
      }
      return Unit{};
    });
  }

  void give_up(const Error& why) {
    if (!forms_) return;
    (void)try_to<Unit>([&]() -> Result<Unit> {
      tell_others(why);
      return Unit{};
    });
  }

  // Whether a later group has begun.
  bool is_over() { return store_->add(kGroups, 0) != number_; }

  [[nodiscard]] Error ended() const {
    return {.kind = ErrorKind::node_stopped,
            .text = "the group ended before this worker had come back to it",
            .worker = options_.names[rank()]};
  }

  // The records of other workers that are not what they were when they were read last.
  Members changed() {
    Members news(world_size());
    const int64_t seen = seen_;
    if (changes() == seen) return news;
    const Members before = known_;
    if (!look().ok()) return news;  // of a worker of another program, which nobody will meet
    for (uint32_t other = 0; other < world_size(); ++other)
      if (other != rank() && known_[other] != before[other]) news[other] = known_[other];
    return news;
  }

 private:
  static constexpr char kGroups[] = "groups";

  // c10d reports everything by exceptions of several types.
  template <class Value, class Body>
  Result<Value> try_to(Body body) {
    try {
      return body();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      return failure(ErrorKind::peer_lost, "the rendezvous at " +
                                               MeetingStore::place(options_.placement) +
                                               " failed: " + text.substr(0, text.find('\n')));
    }
  }

  [[nodiscard]] uint32_t rank() const { return options_.placement.rank; }
  [[nodiscard]] uint32_t world_size() const { return static_cast<uint32_t>(options_.names.size()); }
  [[nodiscard]] std::string describe(uint32_t rank) const {
    return "rank " + std::to_string(rank) + " ('" + options_.names[rank] + "')";
  }
  [[nodiscard]] std::string member_key(uint32_t rank) const {
    return group_ + "members/" + std::to_string(rank);
  }
  [[nodiscard]] std::string changes_key() const { return group_ + "changes"; }

  // A store may have served earlier groups of the same run: a program may start anew in the same
  // processes.
  Result<uint32_t> claim() {
    number_ = store_->add(kGroups, 0);
    group_ = (options_.dynamic ? "dynamic" : "group") + std::to_string(number_) + "/";
    const int64_t claims = store_->add(group_ + "claims/" + std::to_string(rank()), 1);
    forms_ = !options_.dynamic && !store_->has({group_ + "formed"});
    if (forms_ && claims > 1) {
      const Error twice =
          failure(ErrorKind::bad_arguments, "two workers were started as " + describe(rank()) +
                                                ": each rank and name must be given once");
      tell_others(twice);
      return twice;
    }
    // There is nothing to come back to.
    if (options_.dynamic && claims > 1 && alone()) {
      end_group();
      return claim();
    }
    return static_cast<uint32_t>(claims - 1);
  }

  // The first worker to say so is enough.
  void end_group() {
    if (store_->add(group_ + "over", 1) == 1) store_->add(kGroups, 1);
  }

  // Whether nobody else is in this dynamic group.
  bool alone() {
    for (uint32_t other = 0; other < world_size(); ++other) {
      if (other == rank() || !store_->has({member_key(other)})) continue;
      if (store_->get(member_key(other)) != kGone) return false;
    }
    return true;
  }

  // How often a record has been replaced.
  int64_t changes() { return store_->add(changes_key(), 0); }

  // The members that are there now. Changes beyond the number read first have yet to be read.
  Result<Members> look() {
    seen_ = changes();
    Members members(world_size());
    for (uint32_t other = 0; other < world_size(); ++other) {
      if (!store_->has({member_key(other)})) continue;
      const std::string text = store_->get(member_key(other));
      if (text == kGone) continue;
      members[other] = decode_member(text);
      if (Status fits = check(other, members[other]); !fits.ok()) return fits.error();
    }
    known_ = members;
    return members;
  }

  Result<Members> meet_all() {
    if (Status all = wait_for_all(); !all.ok()) return all.error();
    Result<Members> members = look();
    if (!members.ok()) return members;
    const int64_t arrived = store_->add(group_ + "arrived", 1);
    if (arrived == world_size()) store_->set(group_ + "formed", "yes");
    return members;
  }

  Status wait_for_all() {
    std::vector<std::string> keys;
    for (uint32_t rank = 0; rank < world_size(); ++rank) keys.push_back(member_key(rank));
    std::chrono::milliseconds pause = kFirstLook;
    while (!store_->has(keys)) {
      if (store_->has({group_ + "failure"}))
        return failure(ErrorKind::peer_lost, store_->get(group_ + "failure"));
      if (Clock::now() >= deadline_) return missing();
      std::this_thread::sleep_for(pause);
      pause = std::min(kLooksApart, 2 * pause);
    }
    return Unit{};
  }

  Error missing() {
    std::string text =
        "not all workers came within " +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count()) +
        " s; missing:";
    for (uint32_t rank = 0; rank < world_size(); ++rank)
      if (!store_->has({member_key(rank)})) text += " " + describe(rank) + ",";
    text.pop_back();
    return failure(ErrorKind::timeout, text);
  }

  Status check(uint32_t rank, const std::optional<MemberRecord>& record) const {
    if (!record)
      return failure(ErrorKind::protocol, describe(rank) + " published what cannot be read");
    if (record->world_size != world_size())
      return failure(ErrorKind::bad_arguments,
                     describe(rank) + " expects " + std::to_string(record->world_size) +
                         " workers, this one " + std::to_string(world_size()));
    if (record->name != options_.names[rank])
      return failure(ErrorKind::bad_arguments, describe(rank) + " calls itself '" + record->name +
                                                   "': do all workers run the same program?");
    return Unit{};
  }

  // The workers that still wait fail with the same reason; the server of the store gives them time
  // to read.
  void tell_others(const Error& error) {
    store_->set(group_ + "failure", error.text);
    if (rank() == 0 && MeetingStore::served_by_worker(options_.placement))
      std::this_thread::sleep_for(3 * kLooksApart);
  }

  const RendezvousOptions& options_;
  const Clock::time_point deadline_;
  std::unique_ptr<MeetingStore> store_;
  int64_t number_ = 0;  // of the group, among those of the store
  std::string group_;   // before its keys
  bool forms_ = false;  // all of it wait for all
  int64_t seen_ = 0;    // changes
  Members known_;       // as read last
};

// Looks at the store from a thread of its own.
class Rendezvous::Follower {
 public:
  Follower(Meeting& meeting, RendezvousListener listener)
      : meeting_(meeting), listener_(std::move(listener)) {
    thread_ = std::thread([this] { run(); });
  }
  ~Follower() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void run() {
    std::chrono::milliseconds pause = kFirstLook;
    try {
      while (sleep(pause) && !listener_.joined()) {
        pause = std::min(kLooksApart, 2 * pause);
        if (!look()) return;
      }
    } catch (const std::exception&) {
      // The store is gone. So is the group, or it goes on without.
    }
  }

  // False when it was woken to end.
  bool sleep(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, pause, [this] { return stopped_; });
  }

  // False when there is nothing more to see.
  bool look() {
    if (meeting_.is_over()) {
      listener_.over(meeting_.ended());
      return false;
    }
    const Members news = meeting_.changed();
    for (uint32_t rank = 0; rank < news.size(); ++rank)
      if (news[rank]) listener_.moved({rank}, news[rank]->address);
    return true;
  }

  Meeting& meeting_;
  const RendezvousListener listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::thread thread_;
};

Rendezvous::Rendezvous(RendezvousOptions options) : options_(std::move(options)) {}
Rendezvous::~Rendezvous() = default;

Result<uint32_t> Rendezvous::enter() {
  meeting_ = std::make_unique<Meeting>(options_);
  return meeting_->enter();
}

Result<Members> Rendezvous::meet(const MemberRecord& self) { return meeting_->meet(self); }

void Rendezvous::give_up(const Error& why) { meeting_->give_up(why); }

void Rendezvous::follow(RendezvousListener listener) {
  follower_ = std::make_unique<Follower>(*meeting_, std::move(listener));
}

void Rendezvous::stop_following() { follower_.reset(); }

void Rendezvous::leave(bool with_all) {
  stop_following();
  meeting_->leave(with_all);
}

}  // namespace rehearsal::real
