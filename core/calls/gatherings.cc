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
      lives_(options.names.size()) {
  lives_[options.self.value] = options.life;
}

uint64_t Gatherings::lives_of(const std::vector<uint32_t>& members) const {
  uint64_t lives = 0;
  for (const uint32_t member : members) lives += lives_[member];
  return lives;
}

GatherRound Gatherings::next_round(std::vector<uint32_t> members) {
  const uint64_t lives = lives_of(members);
  auto& [counted_in, number] = next_[members];
  if (counted_in != lives) number = 0;
  counted_in = lives;
  return {.members = std::move(members), .lives = lives, .number = number++};
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
  Gathering& gathering = gatherings_[round];
  gathering.shares[from.value] = std::move(share);
  gathering.waiting.push_back(std::move(gathered));
  if (const MaybeError failed = gathering.failed ? gathering.failed : why_impossible(round))
    return fail(round, *failed);
  if (gathering.shares.size() == round.members.size()) return finish(round);
  if (deadline && (!gathering.when || *deadline < *gathering.when)) set_deadline(round, *deadline);
}

void Gatherings::set_deadline(const GatherRound& round, Instant when) {
  Gathering& gathering = gatherings_.at(round);
  deadlines_.remove(gathering.deadline);
  gathering.when = when;
  gathering.deadline = deadlines_.add(when, [this, round] {
    gatherings_.at(round).deadline = {};
    fail(round, {.kind = ErrorKind::timeout,
                 .text = "a gathering has not come together in time; missing:" + missing(round),
                 .worker = strand_.name()});
  });
}

void Gatherings::finish(const GatherRound& round) {
  auto gathering = std::move(gatherings_.extract(round).mapped());
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
  if (is_over || all_came) gatherings_.erase(round);
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
  }
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
