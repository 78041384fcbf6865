#include "tests/sim/explore/toy_program.h"

#include <algorithm>

#include "core/base/hash.h"

namespace rehearsal::sim::explore {
namespace {

using Kind = Transition::Kind;
using Way = std::pair<uint32_t, uint32_t>;

class ToyRun {
 public:
  ToyRun(const ToyProgram& program, Guide& guide)
      : program_(program), guide_(guide), faults_(program.faults) {
    for (const auto& [node, sends] : program.at_start) send(node, sends, kBeforeAll);
  }

  std::string run() {
    while (true) {
      const std::vector<Candidate> enabled = candidates();
      const size_t picked = guide_.pick(enabled);
      if (picked == Guide::kStop) return enabled.empty() ? order() : "";
      const Transition transition = enabled[picked].transition;
      steps_.push_back(transition);
      names_.push_back(to_string(transition) + "#" + std::to_string(counts_[transition]++));
      happen(transition);
    }
  }

 private:
  static constexpr size_t kBeforeAll = SIZE_MAX;
  struct Message {
    int content = 0;
    size_t sent_in = kBeforeAll;
    uint64_t event = 0;
  };

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> enabled;
    for (const auto& [way, lane] : lanes_) {
      if (lane.empty()) continue;
      Candidate candidate{{Kind::small_lane, way.first, way.second}, lane.front().event, {}};
      if (lane.front().sent_in != kBeforeAll) candidate.causes.push_back(lane.front().sent_in);
      enabled.push_back(candidate);
    }
    for (const Transition& fault : faults_) enabled.push_back({fault, 0, {}});
    return enabled;
  }

  void happen(const Transition& transition) {
    if (transition.kind == Kind::small_lane) {
      std::deque<Message>& lane = lanes_[{transition.first, transition.second}];
      const Message message = lane.front();
      lane.pop_front();
      const auto sends = program_.on.find({transition.second, message.content});
      if (sends != program_.on.end()) send(transition.second, sends->second, steps_.size() - 1);
      return;
    }
    std::erase(faults_, transition);
    if (transition.kind == Kind::cut) {
      broken_.insert({std::min(transition.first, transition.second),
                      std::max(transition.first, transition.second)});
      lose_some({transition.first, transition.second});
      lose_some({transition.second, transition.first});
      return;
    }
    dead_.insert(transition.first);
    for (auto& [way, lane] : lanes_) {
      if (way.second == transition.first) lane.clear();
      if (way.first == transition.first) lose_some(way);
    }
  }

  void lose_some(Way way) {
    std::deque<Message>& lane = lanes_[way];
    if (lane.empty()) return;
    const uint64_t lost = guide_.choose(lane.size() + 1);
    names_.back() += "/" + std::to_string(lost);
    lane.resize(lane.size() - lost);
  }

  void send(uint32_t from, const std::vector<ToyProgram::Send>& sends, size_t step) {
    for (const ToyProgram::Send& sent : sends) {
      const bool broken = broken_.contains({std::min(from, sent.to), std::max(from, sent.to)}) ||
                          dead_.contains(sent.to);
      if (!broken) lanes_[{from, sent.to}].push_back({sent.message, step, ++events_});
    }
  }

  // Which of each two dependent steps came first.
  std::string order() const {
    std::set<std::string> pairs(names_.begin(), names_.end());
    for (size_t later = 0; later < steps_.size(); ++later)
      for (size_t earlier = 0; earlier < later; ++earlier)
        if (dependent(steps_[earlier], steps_[later]))
          pairs.insert(names_[earlier] + "<" + names_[later]);
    std::string text = ".";
    for (const std::string& pair : pairs) text += pair + " ";
    return text;
  }

  const ToyProgram& program_;
  Guide& guide_;
  std::vector<Transition> faults_;
  std::map<Way, std::deque<Message>> lanes_;
  std::set<Way> broken_;
  std::set<uint32_t> dead_;
  std::vector<Transition> steps_;
  std::vector<std::string> names_;
  std::map<Transition, int> counts_;
  uint64_t events_ = 0;
};

}  // namespace

std::string ToyProgram::run(Guide& guide) const { return ToyRun(*this, guide).run(); }

ToyProgram random_toy_program(uint64_t seed) {
  uint64_t state = seed;
  const auto draw = [&state](uint64_t n) { return (state = mix(state, 1)) % n; };
  ToyProgram program;
  const uint64_t nodes = 2 + draw(3);
  const auto other_than = [&](uint64_t node) {
    return static_cast<uint32_t>((node + 1 + draw(nodes - 1)) % nodes);
  };
  const uint64_t messages = 3 + draw(3);
  for (uint64_t message = 0; message < messages; ++message) {
    const auto from = static_cast<uint32_t>(draw(nodes));
    const ToyProgram::Send sent{other_than(from), static_cast<int>(message)};
    if (message < 2 || draw(2) == 0) {
      program.at_start[from].push_back(sent);
    } else {  // It answers an earlier one, wherever that arrives.
      program.on[{from, static_cast<int>(draw(message))}].push_back(sent);
    }
  }
  const auto first = static_cast<uint32_t>(draw(nodes));
  if (const uint64_t fault = draw(3); fault == 1)
    program.faults.push_back({Kind::crash, first, 0});
  else if (fault == 2)
    program.faults.push_back({Kind::cut, first, other_than(first)});
  return program;
}

}  // namespace rehearsal::sim::explore
