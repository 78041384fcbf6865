#include "sim/explain/call_chain.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace rehearsal::sim {
namespace {

class Following {
 public:
  explicit Following(const Chronicle& chronicle) : chronicle_(chronicle) {
    for (size_t i = 0; i < chronicle.moments.size(); ++i) note(i);
  }

  CallChain from(size_t failed) {
    const Entry& entry = entry_of(failed);
    chain_.insert(failed);
    if (entry.kind == EntryKind::thrown) go_down(failed);
    go_up(entry.id);
    return {{chain_.begin(), chain_.end()}, origin_};
  }

 private:
  const Entry& entry_of(size_t moment) const { return chronicle_.moments[moment].entry; }

  void note(size_t number) {
    const Moment& moment = chronicle_.moments[number];
    const Entry& entry = moment.entry;
    if (entry.kind == EntryKind::thrown) throws_[entry.id].push_back(number);
    if (entry.kind != EntryKind::event) return;
    if (entry.event == EventKind::api_call) made_.try_emplace(entry.id, number);
    if (entry.event == EventKind::call_completed && entry.number != 0) failed_.push_back(number);
    if (entry.event != EventKind::frame_sent) return;
    if (message_of(moment) == "Call") sent_.try_emplace(entry.id, number);
    if (message_of(moment) == "Response") answered_.try_emplace(entry.id, number);
  }

  // The message of the call, or where it was made if none was sent.
  void add_call(const std::string& id) {
    const auto sent = sent_.find(id);
    if (sent != sent_.end()) {
      chain_.insert(sent->second);
    } else if (const auto made = made_.find(id); made != made_.end()) {
      chain_.insert(made->second);
    }
  }

  // From an execution to the calls that led to it.
  void go_up(std::string execution) {
    std::set<std::string> seen;  // Short ids need not be different.
    for (auto made = made_.find(execution); made != made_.end() && seen.insert(execution).second;
         made = made_.find(execution)) {
      add_call(execution);
      execution = entry_of(made->second).parent;
    }
  }

  // From a throw that a call had brought to the one in the function that was called.
  void go_down(size_t thrown) {
    chain_.insert(thrown);
    origin_ = thrown;
    if (entry_of(thrown).number == 0) return;
    const auto call = std::find_if(failed_.rbegin(), failed_.rend(), [&](size_t completed) {
      const auto made = made_.find(entry_of(completed).id);
      return completed < thrown && made != made_.end() &&
             entry_of(made->second).parent == entry_of(thrown).id;
    });
    if (call == failed_.rend()) return;
    const std::string& id = entry_of(*call).id;
    add_call(id);
    if (const auto answer = answered_.find(id); answer != answered_.end())
      chain_.insert(answer->second);
    const std::vector<size_t>& there = throws_[id];
    if (!there.empty() && there.back() < thrown) go_down(there.back());
  }

  const Chronicle& chronicle_;
  std::map<std::string, size_t> made_, sent_, answered_;  // by the id of a call
  std::map<std::string, std::vector<size_t>> throws_;     // by the id of an execution
  std::vector<size_t> failed_;                            // calls that ended with an error
  std::set<size_t> chain_;
  std::optional<size_t> origin_;
};

}  // namespace

CallChain call_chain(const Chronicle& chronicle) {
  if (!chronicle.failed_at) return {};
  return Following(chronicle).from(*chronicle.failed_at);
}

}  // namespace rehearsal::sim
