#include "real_net/worker/meeting.h"

#include <algorithm>
#include <thread>

#include "core/base/check.h"
#include "core/base/ids.h"
#include "core/base/short_text.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

// A store of another run that is about to end is waited for so long.
constexpr auto kEndLimit = std::chrono::seconds(3);
// So many of the last ones that were refused are told at a time: their number is one that anybody
// who reaches the store may write.
constexpr int64_t kRefusalsTold = 16;
constexpr char kGroups[] = "groups";
constexpr char kForeigners[] = "foreigners";

Error failure(ErrorKind kind, std::string text) { return {.kind = kind, .text = std::move(text)}; }

GroupCard card_of(const RendezvousOptions& options, const std::string& worker) {
  return {.run = options.placement.run,
          .dynamic = options.dynamic,
          .names = options.names,
          .libtorch = options.libtorch,
          .functions = options.functions,
          .settings = options.settings,
          .begun = begun_now(worker)};
}

}  // namespace

Meeting::Meeting(const RendezvousOptions& options)
    : options_(options),
      seal_(options.auth),
      card_(card_of(options, describe(options.placement.rank))),
      patience_(options.timeout, options.first_word, options.tell) {}

Meeting::~Meeting() = default;

// It cannot say who it is to those who wait: that somebody came they may believe anybody.
Error Meeting::foreign(const ForeignText& text) {
  try {
    if (store_ != nullptr) store_->add(kForeigners, 1);
  } catch (const std::exception&) {
    // The store is gone: nobody waits there.
  }
  return failure(ErrorKind::bad_arguments, "the group at " + place() +
                                               " is not that of this worker, " + describe(rank()) +
                                               ": " + text.what());
}

Error Meeting::store_failed(const std::exception& error) const {
  const std::string what = error.what();
  std::string text = "the rendezvous at " + place() + " failed: " + what.substr(0, what.find('\n'));
  if (MeetingStore::served_by_worker(options_.placement) && rank() != 0)
    text += "; " + describe(0) + ", which serves it, has ended or hangs";
  return failure(ErrorKind::peer_lost, text);
}

bool Meeting::serves() const {
  return rank() == 0 && MeetingStore::served_by_worker(options_.placement);
}

std::string Meeting::describe(uint32_t rank) const {
  const std::string text = "rank " + std::to_string(rank);
  return rank < options_.names.size() ? text + " ('" + options_.names[rank] + "')" : text;
}

std::string Meeting::key(const std::string& name, uint32_t rank) const {
  return group_ + name + "/" + std::to_string(rank);
}

// ---- coming -----------------------------------------------------------------

Result<uint32_t> Meeting::enter() {
  while (true) {
    auto opened = MeetingStore::open(options_.placement, options_.names, seal_, patience_);
    if (!opened.ok()) return opened.error();
    store_ = std::move(opened).value();
    store_->set_patience(&patience_);
    try {
      const Result<bool> right = serves_this_run();
      if (!right.ok()) return right.error();
      if (right.value()) return claim();
    } catch (const ForeignText& text) {
      return foreign(text);
    } catch (const std::exception& error) {
      // One that a worker has served, and that has ended with it, is followed by the next.
      const bool may_come = MeetingStore::served_by_worker(options_.placement) && rank() != 0;
      if (!may_come || patience_.is_over()) return store_failed(error);
    }
    store_.reset();
    std::this_thread::sleep_for(kLooksApart);
    patience_.waits_for("the group that met at " + place() + " before to make way");
  }
}

// False if it is about to end: it is of a group that has ended.
Result<bool> Meeting::serves_this_run() {
  if (!MeetingStore::served_by_worker(options_.placement)) return true;
  if (serves()) {
    store_->announce(encode(card_));
    return true;
  }
  const auto limit = std::min<Clock::time_point>(Clock::now() + kEndLimit, patience_.deadline());
  while (true) {
    const std::optional<std::string> text = store_->announced();
    if (text == kEnded) return false;
    const std::optional<GroupCard> theirs = text ? decode_card(*text) : std::nullopt;
    if (text && !theirs)
      return failure(ErrorKind::bad_arguments,
                     "the store at " + place() + " is another program's; choose another port");
    if (theirs && theirs->run == options_.placement.run) return true;
    if (theirs && Clock::now() >= limit) return of_another_run(*theirs);
    if (patience_.is_over())
      return failure(ErrorKind::timeout, "there is a store at " + place() +
                                             ", but no group: another program may serve it");
    patience_.waits_for("a group at " + place() + ": a store is there, perhaps another program's");
    std::this_thread::sleep_for(kLooksApart / 5);
  }
}

Error Meeting::of_another_run(const GroupCard& theirs) {
  const std::unique_ptr<MeetingStore> there = store_->of_run(theirs.run);
  const std::string group = "group" + std::to_string(there->add(kGroups, 0)) + "/";
  std::vector<std::string> present;
  for (uint32_t other = 0; other < theirs.names.size(); ++other)
    if (there->has({group + "members/" + std::to_string(other)}))
      present.push_back(theirs.names[other]);
  return failure(ErrorKind::bad_arguments,
                 "the rendezvous at " + place() + " is of another run than " +
                     run_in_words(options_.placement.run) + " of this worker, " + describe(rank()) +
                     ": there is " + rehearsal::real::describe(theirs) +
                     "; known in it: " + (present.empty() ? "none" : listed(present)) +
                     ". Choose another MASTER_PORT or --rendezvous, or wait until it has ended");
}

// A store may have served earlier groups of the same run: a program may start anew in the same
// processes.
void Meeting::choose_group() {
  number_ = store_->add(kGroups, 0);
  group_ = "group" + std::to_string(number_) + "/";
}

Result<uint32_t> Meeting::claim() {
  while (true) {
    choose_group();
    const std::string text = store_->set_if_missing(group_ + "card", encode(card_));
    const GroupCard first = decode_card(text).value_or(card_);
    forms_ = !first.dynamic && !store_->has({group_ + "formed"});
    if (const auto what = difference(card_, first)) {
      if (anybody_is_there(first)) return does_not_fit(first, *what);
      end_group();  // Nobody is left of it.
      continue;
    }
    const bool failed = store_->has({group_ + "failure"});
    if (!failed && !forms_ && is_there(rank())) return place_is_taken("");
    life_ = store_->add(key("claims", rank()), 1) - 1;
    const bool came_again = life_ > 0;
    if (failed && !came_again) return why_it_failed();
    const bool can_be = life_ >= 0 && life_ < int64_t{kLivesMax};
    if (!failed && !can_be) return too_many_lives();
    if (!failed && forms_ && came_again && predecessor_lives())
      return place_is_taken(", and waits for the others");
    // There is nothing to come back to.
    if (came_again && (failed || (options_.dynamic && alone()))) {
      end_group();
      continue;
    }
    if (options_.dynamic && rank() == 0 && came_again) founds_after_ = others_that_live();
    return static_cast<uint32_t>(life_);
  }
}

// Those that wait would wait in vain.
Error Meeting::too_many_lives() {
  const std::string text = "the store at " + place() + " says that " + describe(rank()) + " came " +
                           std::to_string(life_) + " times before (its counter " +
                           key("claims", rank()) +
                           "), which cannot be: somebody else has written there. Give this group a "
                           "rendezvous or a run " +
                           "id of its own (MASTER_PORT, --rendezvous, --run-id)";
  if (forms_) fail_group(text);
  return failure(ErrorKind::bad_arguments, text);
}

Error Meeting::does_not_fit(const GroupCard& first, const std::string& what) {
  const std::string theirs = difference(first, card_).value_or(what);
  const bool awaited =
      forms_ && rank() < first.names.size() && store_->add(key("claims", rank()), 0) == 0;
  const std::string line = describe(rank()) + " came and does not fit: " + theirs;
  if (awaited) {
    store_->add(key("claims", rank()), 1);  // It has been there: it may begin the next group.
    fail_group(line + "; start all workers of a group with the same program and options");
  } else {
    note_refusal(line + "; it was refused");
  }
  return failure(ErrorKind::bad_arguments,
                 "the group at " + place() + " is another than that of this worker, " +
                     describe(rank()) + ": " + what + ". There is " +
                     rehearsal::real::describe(first) +
                     ". Start all its workers with the same program and options, or give this " +
                     "group a rendezvous of its own (MASTER_PORT, --rendezvous)");
}

// The first worker to say so is enough.
void Meeting::end_group() {
  if (store_->add(group_ + "over", 1) == 1) store_->add(kGroups, 1);
}

// ---- meeting ----------------------------------------------------------------

Result<Members> Meeting::meet(const MemberRecord& self) {
  return try_to<Members>([&]() -> Result<Members> {
    REHEARSAL_CHECK(store_ != nullptr);
    store_->set(key("members", rank()), encode(self));
    if (!forms_ || life_ > 0) store_->add(group_ + "changes", 1);
    Result<Members> met = forms_ ? meet_all() : look();
    if (!met.ok() && forms_) fail_group(met.error().text);
    store_->set_patience(nullptr);
    return met;
  });
}

// How often a record has been replaced.
int64_t Meeting::changes() { return store_->add(group_ + "changes", 0); }

// The members that are there now. Changes beyond the number read first have yet to be read.
Result<Members> Meeting::look() {
  seen_ = changes();
  Members members(world_size());
  for (uint32_t other = 0; other < world_size(); ++other) {
    if (!store_->has({key("members", other)})) continue;
    const std::string text = store_->get(key("members", other));
    if (text == kGone) continue;
    members[other] = decode_member(text);
    if (Status fits = check(other, members[other]); !fits.ok()) return fits.error();
  }
  known_ = members;
  return members;
}

Result<Members> Meeting::meet_all() {
  if (Status all = wait_for_all(); !all.ok()) return all.error();
  Result<Members> members = look();
  if (!members.ok()) return members;
  const int64_t arrived = store_->add(group_ + "arrived", 1);
  if (arrived == world_size()) store_->set(group_ + "formed", "yes");
  return members;
}

Status Meeting::wait_for_all() {
  std::vector<std::string> keys;
  for (uint32_t rank = 0; rank < world_size(); ++rank) keys.push_back(key("members", rank));
  std::chrono::milliseconds pause = kFirstLook;
  while (!store_->has(keys)) {
    if (MaybeError failed = hear_news()) return *failed;
    if (patience_.is_over()) return missing();
    patience_.waits_for([this] {
      const bool told = store_->add(kForeigners, 0) > 0;
      return missing_ranks() + " to come to " + place() +
             (told ? "; somebody came with another secret (--auth), or none, and was refused" : "");
    });
    std::this_thread::sleep_for(pause);
    pause = std::min(kLooksApart, 2 * pause);
  }
  return Unit{};
}

// Why the group will not form, if so. Answers a roll call, and tells who was refused.
MaybeError Meeting::hear_news() {
  const int64_t news = store_->add(group_ + "news", 0);
  if (news == news_) return std::nullopt;
  news_ = news;
  if (store_->has({group_ + "failure"})) return why_it_failed();
  const int64_t refusals = store_->add(group_ + "refusals", 0);
  if (refusals > refusals_) refusals_ = std::max(refusals_, refusals - kRefusalsTold);
  while (refusals_ < refusals)
    if (const auto line = refusal(++refusals_)) patience_.tell("is told: " + *line);
  const int64_t roll = store_->add(group_ + "roll", 0);
  if (roll != std::exchange(roll_, roll)) {
    store_->add(key("present", rank()), 1);
    store_->add(group_ + "present/any", 1);
  }
  return std::nullopt;
}

// The line about a worker that was refused, if there is one with this number.
std::optional<std::string> Meeting::refusal(int64_t number) {
  const std::string place = group_ + "refusal/" + std::to_string(number);
  return store_->has({place}) ? std::optional(store_->get(place)) : std::nullopt;
}

// The worker that serves the store may end it as soon as the last one says that it has read: so the
// text is read first.
Error Meeting::why_it_failed() {
  Error why = failure(ErrorKind::peer_lost, store_->get(group_ + "failure"));
  try {
    store_->add(group_ + "read", 1);
  } catch (const std::exception&) {
    // The store has ended meanwhile: nobody waits for this word.
  }
  return why;
}

std::string Meeting::missing_ranks() {
  std::string text;
  for (uint32_t rank = 0; rank < world_size(); ++rank)
    if (!store_->has({key("members", rank)})) text += (text.empty() ? "" : ", ") + describe(rank);
  return text;
}

Error Meeting::missing() {
  std::string text = "not all workers came within " + in_words(options_.timeout) + " to " +
                     place() + "; missing: " + missing_ranks();
  if (const auto last = refusal(refusals_)) text += "; " + *last;
  return failure(ErrorKind::timeout, text);
}

Status Meeting::check(uint32_t rank, const std::optional<MemberRecord>& record) const {
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

bool Meeting::is_over() { return store_->add(kGroups, 0) != number_; }

Error Meeting::ended() const {
  return {.kind = ErrorKind::node_stopped,
          .text = "the group ended before this worker had come back to it",
          .worker = options_.names[rank()]};
}

MaybeError Meeting::ended_with_store() const {
  const Placement& placement = options_.placement;
  const bool needed = !options_.dynamic && MeetingStore::served_by_worker(placement);
  if (!needed || rank() == 0 || MeetingStore::reachable(placement)) return std::nullopt;
  Error why = failure(ErrorKind::peer_lost, describe(0) + ", which served the rendezvous at " +
                                                place() + ", ended before this worker had joined");
  why.worker = options_.names.front();
  return why;
}

Members Meeting::changed() {
  Members news(world_size());
  const int64_t seen = seen_;
  if (changes() == seen) return news;
  const Members before = known_;
  if (!look().ok()) return news;  // of a worker of another program, which nobody will meet
  for (uint32_t other = 0; other < world_size(); ++other)
    if (other != rank() && known_[other] != before[other]) news[other] = known_[other];
  return news;
}

}  // namespace rehearsal::real
