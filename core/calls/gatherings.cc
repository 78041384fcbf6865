#include "core/calls/gatherings.h"

#include <algorithm>

#include "core/session/session.h"

namespace rehearsal {

Gatherings::Gatherings(const SessionOptions& options, NodeStrand& strand, Sessions& sessions,
                       Deadlines& deadlines)
    : options_(options),
      strand_(strand),
      sessions_(sessions),
      deadlines_(deadlines),
      lives_(options.names.size()),
      mailboxes_(options, strand, sessions, deadlines),
      stores_(options, strand) {
  lives_[options.self.value] = options.life;
}

uint64_t Gatherings::lives_of(const std::vector<uint32_t>& members) const {
  uint64_t lives = 0;
  for (const uint32_t member : members) lives += lives_[member];
  return lives;
}

Result<GatherRound> Gatherings::next_round(std::vector<uint32_t> members) {
  const auto [known, is_new] = next_.try_emplace(members);
  NextRound& next = known->second;
  std::vector<uint32_t> now;
  for (const uint32_t member : members) now.push_back(lives_[member]);
  if (is_new) next.lives = now;
  if (next.lives != now) {
    const auto changed = std::mismatch(next.lives.begin(), next.lives.end(), now.begin()).first;
    const uint32_t member = members[static_cast<size_t>(changed - next.lives.begin())];
    const bool is_news = !next.knows_loss;
    next = {.lives = std::move(now)};
    if (is_news)
      return Error{.kind = ErrorKind::peer_lost,
                   .text = "worker '" + options_.names[member] +
                           "' has come back in a new life since the last gathering: gather again",
                   .worker = options_.names[member]};
  }
  const uint64_t lives = lives_of(members);
  return GatherRound{.members = std::move(members), .lives = lives, .number = next.number++};
}

// ---- at the first member ----------------------------------------------------

bool Gatherings::is_round(WorkerId from, const GatherRound& round) const {
  const std::vector<uint32_t>& members = round.members;
  return !members.empty() && members.front() == options_.self.value &&
         members.back() < options_.names.size() &&
         std::adjacent_find(members.begin(), members.end(), std::greater_equal<>()) ==
             members.end() &&
         std::binary_search(members.begin(), members.end(), from.value);
}

MaybeError Gatherings::why_impossible(const GatherRound& round) const {
  for (const uint32_t member : round.members)
    if (const MaybeError& lost = sessions_.unavailable(WorkerId{member})) return *lost;
  if (round.lives < lives_of(round.members))
    return Error{.kind = ErrorKind::peer_lost,
                 .text = "a member of the gathering has come back in a new life: gather again",
                 .worker = strand_.name()};
  return std::nullopt;
}

void Gatherings::contribute(WorkerId from, const GatherRound& round, GatherShare share,
                            const std::optional<Instant>& deadline,
                            std::shared_ptr<FutureState<Shares>> gathered) {
  if (!is_round(from, round))
    return gathered->complete(Error{.kind = ErrorKind::bad_arguments,
                                    .text = "no gathering of which both workers are members",
                                    .worker = strand_.name()});
  const auto known = gatherings_.find(round);
  const bool is_first = known == gatherings_.end() || !known->second.shares.contains(from.value);
  if (is_first && !may_come_to_one_more(from))
    return gathered->complete(Error{.kind = ErrorKind::overloaded,
                                    .text = "the worker has come to " +
                                            std::to_string(options_.limits.gatherings) +
                                            " gatherings to which not all have come",
                                    .worker = strand_.name()});
  Gathering& gathering = gatherings_[round];
  if (!gathering.shares.try_emplace(from.value, std::move(share)).second)
    return gathered->complete(Error{.kind = ErrorKind::bad_arguments,
                                    .text = "a second share of one worker in a gathering",
                                    .worker = strand_.name()});
  gathering.waiting.push_back(std::move(gathered));
  if (const MaybeError failed = gathering.failed ? gathering.failed : why_impossible(round))
    return fail(round, *failed);
  if (gathering.shares.size() == round.members.size()) return finish(round);
  if (deadline && (!gathering.when || *deadline < *gathering.when)) set_deadline(round, *deadline);
}

bool Gatherings::may_come_to_one_more(WorkerId from) {
  if (from == options_.self || open_.add(from, options_.limits.gatherings)) return true;
  sessions_.accuse(from,
                   {"Call.arguments", "is a share in more gatherings than one worker begins"});
  return false;
}

void Gatherings::forget(const GatherRound& round) {
  for (const auto& [member, share] : gatherings_.at(round).shares) open_.remove(WorkerId{member});
  gatherings_.erase(round);
}

void Gatherings::set_deadline(const GatherRound& round, Instant when) {
  Gathering& gathering = gatherings_.at(round);
  deadlines_.remove(gathering.deadline);
  gathering.when = when;
  gathering.deadline = deadlines_.add_loose(when, [this, round] {
    gatherings_.at(round).deadline = {};
    fail(round, {.kind = ErrorKind::timeout,
                 .text = "a gathering has not come together in time; missing:" + missing(round),
                 .worker = strand_.name()});
  });
}

void Gatherings::finish(const GatherRound& round) {
  auto gathering = std::move(gatherings_.at(round));
  for (const auto& [member, share] : gathering.shares) open_.remove(WorkerId{member});
  gatherings_.erase(round);
  deadlines_.remove(gathering.deadline);
  Shares shares;
  shares.reserve(gathering.shares.size());
  for (auto& [member, share] : gathering.shares) shares.push_back(std::move(share));
  for (const auto& waiting : gathering.waiting) waiting->complete(shares);
}

// It stays, without its shares, until all have come: those are refused.
void Gatherings::fail(const GatherRound& round, const Error& why) {
  Gathering& gathering = gatherings_.at(round);
  deadlines_.remove(std::exchange(gathering.deadline, {}));
  gathering.failed = why;
  for (auto& [member, share] : gathering.shares) share = {};
  const auto waiting = std::exchange(gathering.waiting, {});
  forget_if_all_came(round);
  for (const auto& one : waiting) one->complete(why);
}

// A member that is lost, or has begun a new life, does not come to this round any more.
void Gatherings::forget_if_all_came(const GatherRound& round) {
  const Gathering& gathering = gatherings_.at(round);
  const bool is_over = round.lives < lives_of(round.members);
  const bool all_came =
      std::all_of(round.members.begin(), round.members.end(), [&](uint32_t member) {
        return gathering.shares.contains(member) || sessions_.lost(WorkerId{member});
      });
  if (is_over || all_came) forget(round);
}

// A member that comes to it later is refused without it, because another one is lost.
void Gatherings::forget_if_nobody_is_left(const GatherRound& round) {
  const auto found = gatherings_.find(round);
  if (found == gatherings_.end()) return;
  const auto& shares = found->second.shares;
  if (std::all_of(shares.begin(), shares.end(),
                  [this](const auto& share) { return sessions_.lost(WorkerId{share.first}); }))
    forget(round);
}

std::string Gatherings::missing(const GatherRound& round) const {
  const auto found = gatherings_.find(round);
  if (found == gatherings_.end()) return {};
  std::string missing;
  for (const uint32_t member : round.members)
    if (!found->second.shares.contains(member)) missing += " '" + options_.names[member] + "'";
  return missing;
}

void Gatherings::on_peer_fenced(WorkerId peer, const Error& why) {
  std::vector<GatherRound> rounds;
  for (const auto& [round, gathering] : gatherings_)
    if (std::binary_search(round.members.begin(), round.members.end(), peer.value))
      rounds.push_back(round);
  for (const GatherRound& round : rounds) {
    const MaybeError failed = gatherings_.at(round).failed;
    fail(round, failed ? *failed : why);
    forget_if_nobody_is_left(round);
  }
  mailboxes_.on_peer_fenced(peer, why);
  stores_.on_peer_fenced(peer);
}

// Rounds of the lives before are over; those who have met the newcomer first may have begun others.
void Gatherings::on_peer_joined(WorkerId peer, uint32_t life) {
  lives_[peer.value] = life;
  std::vector<GatherRound> over;
  for (const auto& [round, gathering] : gatherings_)
    if (round.lives < lives_of(round.members)) over.push_back(round);
  for (const GatherRound& round : over) fail(round, *why_impossible(round));
}

}  // namespace rehearsal
