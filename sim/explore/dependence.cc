#include "sim/explore/dependence.h"

#include <array>
#include <cstddef>
#include <utility>

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;

// Why two transitions depend on each other.
enum class Relation : uint8_t {
  never,
  always,
  worker,          // both change the state of the same worker
  link,            // both are about the same link
  worker_or_link,  // one of these
  ends,            // the worker whose state one changes, or an end of its link, is one of the other
};

struct Rule {
  Kind one;
  Kind other;
  Relation relation;
};

// Each pair of kinds, once.
constexpr Rule kRules[] = {
    {Kind::small_lane, Kind::small_lane, Relation::worker},
    {Kind::small_lane, Kind::large_lane, Relation::worker},
    {Kind::small_lane, Kind::run, Relation::worker},
    {Kind::small_lane, Kind::news, Relation::link},
    {Kind::small_lane, Kind::closed, Relation::worker},
    {Kind::small_lane, Kind::connect, Relation::link},
    {Kind::small_lane, Kind::cut, Relation::ends},
    {Kind::small_lane, Kind::crash, Relation::ends},
    {Kind::small_lane, Kind::give_up, Relation::worker},
    {Kind::large_lane, Kind::large_lane, Relation::worker},
    {Kind::large_lane, Kind::run, Relation::worker},
    {Kind::large_lane, Kind::news, Relation::link},
    {Kind::large_lane, Kind::closed, Relation::worker},
    {Kind::large_lane, Kind::connect, Relation::link},
    {Kind::large_lane, Kind::cut, Relation::ends},
    {Kind::large_lane, Kind::crash, Relation::ends},
    {Kind::large_lane, Kind::give_up, Relation::worker},
    {Kind::run, Kind::run, Relation::worker},
    {Kind::run, Kind::news, Relation::never},
    {Kind::run, Kind::closed, Relation::worker},
    {Kind::run, Kind::connect, Relation::never},
    {Kind::run, Kind::cut, Relation::ends},
    {Kind::run, Kind::crash, Relation::worker},
    {Kind::run, Kind::give_up, Relation::worker},
    {Kind::news, Kind::news, Relation::never},
    {Kind::news, Kind::closed, Relation::link},
    {Kind::news, Kind::connect, Relation::link},
    {Kind::news, Kind::cut, Relation::link},
    {Kind::news, Kind::crash, Relation::ends},
    {Kind::news, Kind::give_up, Relation::link},
    {Kind::closed, Kind::closed, Relation::worker},
    {Kind::closed, Kind::connect, Relation::link},
    {Kind::closed, Kind::cut, Relation::ends},
    {Kind::closed, Kind::crash, Relation::ends},
    {Kind::closed, Kind::give_up, Relation::worker_or_link},
    {Kind::connect, Kind::connect, Relation::link},
    {Kind::connect, Kind::cut, Relation::link},
    {Kind::connect, Kind::crash, Relation::ends},
    {Kind::connect, Kind::give_up, Relation::link},
    {Kind::cut, Kind::cut, Relation::link},
    {Kind::cut, Kind::crash, Relation::ends},
    {Kind::cut, Kind::give_up, Relation::ends},
    {Kind::crash, Kind::crash, Relation::always},
    {Kind::crash, Kind::give_up, Relation::ends},
    {Kind::give_up, Kind::give_up, Relation::worker_or_link},
};

constexpr size_t place_of(Kind one, Kind other) {
  return static_cast<size_t>(one) * kTransitionKinds + static_cast<size_t>(other);
}

using Table = std::array<Relation, kTransitionKinds * kTransitionKinds>;

// A pair that is missing, or there twice, does not compile.
consteval Table make_table() {
  Table table{};
  std::array<int, kTransitionKinds * kTransitionKinds> times{};
  for (const Rule& rule : kRules) {
    table[place_of(rule.one, rule.other)] = rule.relation;
    table[place_of(rule.other, rule.one)] = rule.relation;
    ++times[place_of(rule.one, rule.other)];
    if (rule.one != rule.other) ++times[place_of(rule.other, rule.one)];
  }
  for (const int count : times)
    if (count != 1) throw "each pair of kinds has one rule";
  return table;
}
constexpr Table kTable = make_table();

constexpr uint32_t kNobody = UINT32_MAX;

// The worker whose state it changes: what it knows, does and sends.
uint32_t worker_of(const Transition& transition) {
  switch (transition.kind) {
    case Kind::small_lane:
    case Kind::large_lane:
      return transition.second;
    case Kind::run:
    case Kind::closed:
    case Kind::crash:
    case Kind::give_up:
      return transition.first;
    case Kind::news:
    case Kind::connect:
    case Kind::cut:
      break;
  }
  return kNobody;
}

// The workers between which it happens.
std::pair<uint32_t, uint32_t> ends_of(const Transition& transition) {
  if (transition.kind == Kind::run || transition.kind == Kind::crash)
    return {transition.first, transition.first};
  return {transition.first, transition.second};
}

bool same_worker(const Transition& one, const Transition& other) {
  const uint32_t worker = worker_of(one);
  return worker != kNobody && worker == worker_of(other);
}

bool same_link(const Transition& one, const Transition& other) {
  const auto [a, b] = ends_of(one);
  const auto [c, d] = ends_of(other);
  return (a == c && b == d) || (a == d && b == c);
}

// A cut and a crash concern what is sent on their links, a crash what is on its way to and from the
// dead: so does what one of the ends does.
bool ends_touch(const Transition& one, const Transition& other) {
  const auto touches = [](const Transition& fault, const Transition& touched) {
    const auto [a, b] = ends_of(fault);
    const auto [c, d] = ends_of(touched);
    const uint32_t worker = worker_of(touched);
    if (fault.kind == Kind::cut) return worker == a || worker == b || same_link(fault, touched);
    return a == c || a == d;
  };
  return one.kind == Kind::crash || (one.kind == Kind::cut && other.kind != Kind::crash)
             ? touches(one, other)
             : touches(other, one);
}

}  // namespace

bool dependent(const Transition& one, const Transition& other) {
  if (one == other) return true;
  switch (kTable[place_of(one.kind, other.kind)]) {
    case Relation::never:
      return false;
    case Relation::always:
      return true;
    case Relation::worker:
      return same_worker(one, other);
    case Relation::link:
      return same_link(one, other);
    case Relation::worker_or_link:
      return same_worker(one, other) || same_link(one, other);
    case Relation::ends:
      return ends_touch(one, other);
  }
  return true;
}

std::string to_string(const Transition& transition) {
  constexpr std::array<const char*, kTransitionKinds> kNames = {
      "small", "large", "run", "news", "closed", "connect", "cut", "crash", "give_up"};
  std::string text = kNames[static_cast<size_t>(transition.kind)];
  text += ":" + std::to_string(transition.first);
  if (transition.kind != Kind::crash) text += "," + std::to_string(transition.second);
  return text;
}

}  // namespace rehearsal::sim::explore
