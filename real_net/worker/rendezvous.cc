#include "real_net/worker/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "real_net/worker/meeting.h"

namespace rehearsal::real {
namespace {

// The last words of a worker come within this, also where the machine is busy.
constexpr auto kGoodbye = std::chrono::milliseconds(1000);

}  // namespace

// Looks at the store from a thread of its own.
class Rendezvous::Follower {
 public:
  Follower(Meeting& meeting, const RendezvousOptions& options, RendezvousListener listener)
      : meeting_(meeting),
        listener_(std::move(listener)),
        patience_(options.timeout, options.first_word, nullptr) {
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
    bool sees = true;  // the store is there, and this group not over
    while (sleep(pause) && !listener_.joined()) {
      pause = std::min(kLooksApart, 2 * pause);
      sees = sees && look();
      if (!listener_.waits) continue;
      if (const auto word = patience_.word()) listener_.waits(*word);
    }
  }

  // False when it was woken to end.
  bool sleep(std::chrono::milliseconds pause) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, pause, [this] { return stopped_; });
  }

  // False when there is nothing more to see.
  bool look() {
    try {
      if (meeting_.is_over()) {
        listener_.over(meeting_.ended());
        return false;
      }
      const Members news = meeting_.changed();
      for (uint32_t rank = 0; rank < news.size(); ++rank)
        if (news[rank]) listener_.moved({rank}, news[rank]->address);
      return true;
    } catch (const std::system_error&) {
      return true;  // No thread can be started now: it looks again.
    } catch (const std::exception&) {
      return look_for_store();
    }
  }

  // The store is gone. A group goes on without, if all of it is there. The worker that served it
  // may have said goodbye, and why: that comes first. False when there is nothing more to see.
  bool look_for_store() {
    try {
      const MaybeError why = meeting_.ended_with_store();
      if (why && sleep(kGoodbye)) listener_.over(*why);
      return false;
    } catch (const std::exception&) {
      return true;
    }
  }

  Meeting& meeting_;
  const RendezvousListener listener_;
  Patience patience_;
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

std::optional<std::vector<WorkerId>> Rendezvous::founds_after() const {
  return meeting_->founds_after();
}

std::shared_ptr<MeetingStore> Rendezvous::store() const {
  std::shared_ptr<MeetingStore> store = meeting_->store().of_run(options_.placement.run);
  store->set_patience(nullptr);
  return store;
}

Result<Members> Rendezvous::meet(const MemberRecord& self) { return meeting_->meet(self); }

void Rendezvous::give_up(const Error& why) { meeting_->give_up(why); }

void Rendezvous::refuse(const Error& why, Duration limit) {
  RendezvousOptions brief = options_;
  brief.timeout = std::min(limit, options_.timeout);
  brief.tell = nullptr;
  Meeting(brief).refuse(why);
}

void Rendezvous::follow(RendezvousListener listener) {
  follower_ = std::make_unique<Follower>(*meeting_, options_, std::move(listener));
}

void Rendezvous::stop_following() { follower_.reset(); }

void Rendezvous::leave(bool with_all) {
  stop_following();
  meeting_->leave(with_all);
}

}  // namespace rehearsal::real
