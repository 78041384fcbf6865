// How a worker that comes finds out who of its group is there.
#include <thread>

#include "real_net/worker/meeting.h"
#include "real_net/worker/presence.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

// A worker that runs, or waits, answers within this.
constexpr auto kAnswerLimit = std::chrono::seconds(2);
constexpr auto kAllAnswerLimit = std::chrono::seconds(5);
// One that is most likely dead.
constexpr auto kLastWordLimit = std::chrono::milliseconds(500);

}  // namespace

Error Meeting::place_is_taken(const std::string& where) {
  const std::string text = store_->get(group_ + "card");
  const std::optional<GroupCard> card = decode_card(text);
  const std::optional<MemberRecord> first = record_of(rank());
  const std::string at = first ? " at " + to_string(first->address) : "";
  const Address& self = options_.self;
  const std::string here = self.host.empty() ? ""
                           : self.port == 0  ? ", at " + self.host
                                             : ", at " + to_string(self);
  note_refusal("a second " + describe(rank()) + " came (" + card_.begun + here +
               ") and was refused");
  return wrong_arguments(
      "two workers were started as " + describe(rank()) + ": the first one runs" + at + where +
      ", in " + (card ? rehearsal::real::describe(*card) : run_in_words(card_.run)) +
      "; the second one was started " + card_.begun + here +
      ". Each rank is given once; a second group needs a rendezvous of its own " +
      "(MASTER_PORT, --rendezvous)");
}

// Where that worker has said that it is, if it has not gone.
std::optional<MemberRecord> Meeting::record_of(uint32_t rank) {
  if (!store_->has({key("members", rank)})) return std::nullopt;
  return decode_member(store_->get(key("members", rank)));
}

// Whether that worker answers where its record says.
bool Meeting::is_there(uint32_t rank) {
  const std::optional<MemberRecord> record = record_of(rank);
  return record && presence_of({rank}, *record, options_.credentials,
                               Clock::now() + kAnswerLimit) == Presence::here;
}

// Whether the life of this worker before this one waits for the others, too. While it waits in the
// store, its port takes connections and answers nothing: it is asked in the store. One whose port
// refuses, or is another's, is dead, unless it says at once that its address misleads.
bool Meeting::predecessor_lives() {
  Duration limit = kAnswerLimit;
  if (const std::optional<MemberRecord> record = record_of(rank())) {
    const Presence presence =
        presence_of({rank()}, *record, options_.credentials, Clock::now() + kAnswerLimit);
    if (presence == Presence::here) return true;
    if (presence == Presence::gone) limit = kLastWordLimit;
  }
  return answers_roll(std::to_string(rank()), limit);
}

// Those that could not be asked in time count as well.
std::vector<WorkerId> Meeting::others_that_live() {
  const auto limit = Clock::now() + kAllAnswerLimit;
  std::vector<WorkerId> living;
  for (uint32_t other = 0; other < world_size(); ++other) {
    if (other == rank() || !record_of(other)) continue;
    if (Clock::now() >= limit || is_there(other)) living.push_back(WorkerId{other});
  }
  return living;
}

bool Meeting::anybody_is_there(const GroupCard& first) {
  if (forms_) return answers_roll("any", kAnswerLimit);
  const auto limit = Clock::now() + kAllAnswerLimit;
  for (uint32_t other = 0; other < first.names.size() && Clock::now() < limit; ++other)
    if (is_there(other)) return true;
  return false;
}

// Whether anybody who waits in a group that forms says that it does.
bool Meeting::answers_roll(const std::string& who, Duration limit) {
  const std::string answers = group_ + "present/" + who;
  const int64_t before = store_->add(answers, 0);
  store_->add(group_ + "roll", 1);
  store_->add(group_ + "news", 1);
  const auto deadline = Clock::now() + limit;
  while (store_->add(answers, 0) == before) {
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kLooksApart / 5);
  }
  return true;
}

// Whether nobody else is in this dynamic group, or about to be: has claimed a place, and has yet to
// publish where it is.
bool Meeting::alone() {
  for (uint32_t other = 0; other < world_size(); ++other) {
    if (other == rank()) continue;
    if (!store_->has({key("members", other)})) {
      if (store_->add(key("claims", other), 0) > 0) return false;
    } else if (store_->get(key("members", other)) != kGone) {
      return false;
    }
  }
  return true;
}

}  // namespace rehearsal::real
