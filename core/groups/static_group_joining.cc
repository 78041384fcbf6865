// The static group: how it comes together.
#include <algorithm>

#include "core/groups/static_group.h"
#include "core/session/session.h"

namespace rehearsal {
namespace {

// A worker that gives up before this has passed may not live to see the ticks of its sessions: the
// others hear whom it has met at half of its time.
constexpr Duration kLongJoin = std::chrono::seconds(60);

}  // namespace

void StaticGroup::join(Duration timeout, UniqueFunction<void(Status)> done) {
  join_done_ = std::move(done);
  const Instant now = strand_.runtime().now();
  join_deadline_ = deadlines_.add(now + timeout, [this] { finish_join(join_timed_out()); });
  if (timeout < kLongJoin)
    half_time_ = deadlines_.add(now + timeout / 2, [this] { tell_whom_we_met(); });
  sessions_.start();
  settle_join();
}

void StaticGroup::settle_join() {
  const size_t all = options_.names.size();
  if (!told_ready_ && met_ + 1 == all) {
    told_ready_ = true;
    for (uint32_t id = 0; id < all; ++id)
      if (WorkerId{id} != options_.self) sessions_.send(WorkerId{id}, Message{Ready{}});
  }
  if (told_ready_ && ready_.size() + 1 == all) finish_join(Unit{});
}

void StaticGroup::finish_join(Status status) {
  if (!join_done_) return;
  deadlines_.remove(join_deadline_);
  deadlines_.remove(half_time_);
  joined_ = status.ok();
  auto done = std::move(join_done_);
  join_done_ = nullptr;
  done(std::move(status));
}

void StaticGroup::on_ready(WorkerId from) {
  ready_.insert(from);
  sessions_.begin_to_serve(from);
  if (join_done_) settle_join();
}

void StaticGroup::on_hello_refused(WorkerId, const Error& why) { finish_join(why); }

// It could not join, or has failed already. A reason that is another worker is ours, too, and told
// as it is, with whom it came through: all tell the same story.
void StaticGroup::on_goodbye(WorkerId from, const Error& why) {
  const std::string& name = options_.names[from.value];
  const auto& names = options_.names;
  if (why.worker != name && std::find(names.begin(), names.end(), why.worker) != names.end()) {
    Error story = why;
    story.chain.push_back(name);
    return finish_join(std::move(story));
  }
  finish_join(Error{.kind = ErrorKind::peer_lost,
                    .text = "worker '" + name + "' has ended: " + why.text,
                    .worker = name});
}

// ---- who is missing ---------------------------------------------------------

void StaticGroup::on_tick() {
  if (join_done_) tell_whom_we_met();
}

// Others who wait for us should know for whom we wait.
void StaticGroup::tell_whom_we_met() {
  std::vector<MetMember> met;
  for (const WorkerId id : living())
    if (id != options_.self) met.push_back({id, lives_[id.value]});
  if (told_ready_ || met == told_met_) return;
  for (const MetMember& to : met) {
    GroupView view{.member = false, .met = met};
    std::erase(view.met, to);
    sessions_.send(to.worker, Message{std::move(view)});
  }
  told_met_ = std::move(met);
}

void StaticGroup::on_view(WorkerId from, const GroupView& view) {
  std::vector<WorkerId>& misses = misses_[from.value];
  misses.clear();
  for (uint32_t id = 0; id < options_.names.size(); ++id) {
    const bool met = WorkerId{id} == from || WorkerId{id} == options_.self ||
                     std::any_of(view.met.begin(), view.met.end(),
                                 [id](const MetMember& one) { return one.worker.value == id; });
    if (!met) misses.push_back(WorkerId{id});
  }
}

// The workers that keep this one from joining. One that has not been met keeps others from being
// ready, too: these are not to blame. When all have been met, those are that say nothing, and those
// that miss somebody else than these.
std::vector<WorkerId> StaticGroup::missing() const {
  std::vector<WorkerId> unmet;
  std::set<WorkerId> mute;
  std::vector<WorkerId> unready;
  for (uint32_t number = 0; number < options_.names.size(); ++number) {
    const WorkerId id{number};
    if (id == options_.self) continue;
    if (!sessions_.joined(id)) unmet.push_back(id);
    if (ready_.contains(id)) continue;
    unready.push_back(id);
    if (misses_[number].empty() || !sessions_.absence(id).empty()) mute.insert(id);
  }
  if (!unmet.empty()) return unmet;
  std::erase_if(unready, [&](WorkerId id) {
    const std::vector<WorkerId>& missed = misses_[id.value];
    return !mute.contains(id) && std::all_of(missed.begin(), missed.end(),
                                             [&](WorkerId one) { return mute.contains(one); });
  });
  return unready;
}

std::string StaticGroup::describe_missing() const {
  std::string list;
  for (const WorkerId id : missing()) {
    std::string remark = sessions_.absence(id);
    if (remark.empty() && misses_[id.value].empty()) remark = "met, but not ready";
    if (remark.empty()) remark = "which misses " + names_of(misses_[id.value]);
    add_to_list(list, options_.names[id.value], remark);
  }
  return list;
}

std::string StaticGroup::names_of(const std::vector<WorkerId>& workers) const {
  std::string names;
  for (const WorkerId id : workers) add_to_list(names, options_.names[id.value], "");
  return names;
}

Error StaticGroup::join_timed_out() const {
  const std::vector<WorkerId> missed = missing();
  return {.kind = ErrorKind::timeout,
          .text = "not all workers have joined in time; missing: " + describe_missing(),
          .worker = missed.empty() ? strand_.name() : options_.names[missed.front().value]};
}

}  // namespace rehearsal
