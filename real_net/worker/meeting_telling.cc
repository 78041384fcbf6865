// How a worker tells the others of its group that it will not come, or that it goes.
#include <algorithm>
#include <thread>

#include "core/base/short_text.h"
#include "real_net/worker/meeting.h"

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;

// Those that wait read why within this, unless they have died.
constexpr auto kReadLimit = std::chrono::seconds(2);
// Those that are about to come have so long.
constexpr auto kComeLimit = 3 * kLooksApart;

}  // namespace

// The workers that still wait fail with the same reason, and those that still come.
void Meeting::fail_group(const std::string& why) {
  store_->set(group_ + "failure", short_text(why));
  store_->add(group_ + "news", 1);
  let_them_read(all_others(), kComeLimit);
  let_them_read(others_there(), kReadLimit);
}

void Meeting::note_refusal(const std::string& line) {
  const int64_t number = store_->add(group_ + "refusals", 1);
  store_->set(group_ + "refusal/" + std::to_string(number), line);
  store_->add(group_ + "news", 1);
}

int64_t Meeting::all_others() const {
  return int64_t{options_.placement.world_size.value_or(world_size())} - 1;
}

// The other workers that have published where they are.
int64_t Meeting::others_there() {
  int64_t others = 0;
  for (uint32_t other = 0; other < world_size(); ++other)
    if (other != rank() && store_->has({key("members", other)})) ++others;
  return others;
}

// The store ends with the worker that serves it: so many others read before.
void Meeting::let_them_read(int64_t readers, Duration limit) {
  if (!serves()) return;
  const auto deadline = Clock::now() + limit;
  while (Clock::now() < deadline && store_->add(group_ + "read", 0) < readers)
    std::this_thread::sleep_for(kLooksApart / 5);
}

void Meeting::give_up(const Error& why) {
  if (!forms_) return;
  (void)try_to<Unit>([&]() -> Result<Unit> {
    fail_group(describe(rank()) + " cannot join: " + why.text);
    return Unit{};
  });
}

void Meeting::refuse(const Error& why) {
  (void)try_to<Unit>([&]() -> Result<Unit> {
    if (options_.dynamic && !serves()) return Unit{};  // nobody waits for it
    auto opened = MeetingStore::open(options_.placement, options_.names, seal_, patience_);
    if (!opened.ok()) return Unit{};
    store_ = std::move(opened).value();
    store_->set_patience(&patience_);
    const Result<bool> right = serves_this_run();
    if (!right.ok() || !right.value()) return Unit{};
    choose_group();
    const std::string line = short_text(describe(rank()) + " refuses to join: " + why.text);
    const std::optional<GroupCard> first =
        store_->has({group_ + "card"}) ? decode_card(store_->get(group_ + "card")) : std::nullopt;
    const bool has_place = serves() || !first || (!first->dynamic && rank() < first->names.size());
    if (!has_place || store_->has({group_ + "formed"}) ||
        store_->add(key("claims", rank()), 0) > 0) {
      note_refusal(line);
      return Unit{};
    }
    store_->add(key("claims", rank()), 1);  // It has been there: it may begin the next group.
    store_->set(group_ + "failure", line);
    store_->add(group_ + "news", 1);
    let_them_read(all_others(), patience_.deadline() - Clock::now());
    return Unit{};
  });
}

void Meeting::leave(bool with_all) {
  (void)try_to<Unit>([&]() -> Result<Unit> {
    const bool lasts = rank() == 0 || !MeetingStore::served_by_worker(options_.placement);
    if (!options_.dynamic) {
      if (with_all && lasts) end_group();
    } else if (lasts || MeetingStore::reachable(options_.placement)) {
      store_->set(key("members", rank()), kGone);
      store_->add(group_ + "changes", 1);
      if (alone()) end_group();
    }
    if (serves()) store_->announce(kEnded);
    return Unit{};
  });
}

}  // namespace rehearsal::real
