#include "core/checkpoint/checkpoint_choice.h"

#include <algorithm>
#include <map>
#include <set>

namespace rehearsal {
namespace {

// A worker may have lost its files, or have been away: others have begun runs meanwhile.
constexpr uint64_t kRunsMissedMax = uint64_t{1} << 32;

class Search {
 public:
  explicit Search(const AskHolders& ask) : ask_(ask) {}

  void ask(const std::vector<std::string>& workers) {
    std::vector<std::string> fresh;
    for (const std::string& worker : workers)
      if (!known_.contains(worker)) fresh.push_back(worker);
    if (fresh.empty()) return;
    const std::vector<HeldCheckpoints> answers = ask_(fresh);
    for (size_t i = 0; i < fresh.size(); ++i) known_.emplace(fresh[i], answers.at(i));
  }

  // The cuts that anybody has, the latest first.
  [[nodiscard]] std::vector<const CheckpointCopy*> cuts() const {
    std::map<CheckpointTag, const CheckpointCopy*, std::greater<>> cuts;
    for (const auto& [worker, held] : known_)
      for (const CheckpointCopy& copy : held.copies) cuts.emplace(copy.tag, &copy);
    std::vector<const CheckpointCopy*> all;
    for (const auto& [tag, copy] : cuts) all.push_back(copy);
    return all;
  }

  [[nodiscard]] const CheckpointCopy* copy_at(const std::string& worker,
                                              const CheckpointTag& tag) const {
    for (const CheckpointCopy& copy : known_.at(worker).copies)
      if (copy.tag == tag) return &copy;
    return nullptr;
  }
  [[nodiscard]] std::vector<std::string> without(const CheckpointCopy& cut) const {
    std::vector<std::string> lacking;
    for (const std::string& holder : cut.holders)
      if (copy_at(holder, cut.tag) == nullptr) lacking.push_back(holder);
    return lacking;
  }

  [[nodiscard]] CheckpointTag committed() const {
    CheckpointTag latest;
    for (const auto& [worker, held] : known_) latest = std::max(latest, held.committed);
    return latest;
  }
  // Throws RpcError (protocol) for a run of which one worker alone has heard, and which is beyond
  // all that can have begun: whoever makes numbers up would use them up.
  [[nodiscard]] uint64_t last_run() const {
    uint64_t last = 0;
    uint64_t of_others = 0;  // than `teller`
    const std::string* teller = nullptr;
    for (const auto& [worker, held] : known_) {
      const uint64_t run = last_run_in(held);
      of_others = std::max(of_others, std::min(run, last));
      if (teller != nullptr && run <= last) continue;
      last = run;
      teller = &worker;
    }
    if (last - of_others > kRunsMissedMax)
      fail_checkpoint(ErrorKind::protocol,
                      "worker '" + *teller + "' tells of run " + std::to_string(last) +
                          ", and the others of " + std::to_string(of_others) + " at most",
                      *teller);
    return last;
  }

 private:
  [[nodiscard]] static uint64_t last_run_in(const HeldCheckpoints& held) {
    uint64_t run = std::max(held.run, held.committed.run);
    for (const CheckpointCopy& copy : held.copies) run = std::max(run, copy.tag.run);
    return run;
  }

  const AskHolders& ask_;
  std::map<std::string, HeldCheckpoints> known_;
};

// The latest one that is whole; null if none is. Asks until it is known.
const CheckpointCopy* latest_whole(Search& search) {
  for (std::set<CheckpointTag> seen;;) {
    const CheckpointCopy* next = nullptr;
    for (const CheckpointCopy* cut : search.cuts())
      if (next == nullptr && !seen.contains(cut->tag)) next = cut;
    if (next == nullptr) return nullptr;
    const CheckpointTag tag = next->tag;
    seen.insert(tag);
    search.ask(std::vector<std::string>(next->holders));
    for (const CheckpointCopy* cut : search.cuts())
      if (cut->tag == tag && search.without(*cut).empty()) return cut;
  }
}

[[noreturn]] void fail_lost(const std::string& name, const Search& search,
                            const CheckpointTag& lost) {
  std::string who;
  for (const CheckpointCopy* cut : search.cuts())
    if (cut->tag == lost)
      for (const std::string& worker : search.without(*cut))
        who += (who.empty() ? "'" : ", '") + worker + "'";
  fail_checkpoint(ErrorKind::storage, "step " + std::to_string(lost.step) + " of '" + name +
                                          "' was saved by all, and " +
                                          (who.empty() ? "somebody" : who) +
                                          " has lost its part: bring its files back, or go on "
                                          "without them with Options::accept_loss");
}

}  // namespace

CheckpointChoice choose_checkpoint(const std::string& name, const std::vector<std::string>& workers,
                                   const AskHolders& ask, bool accept_loss) {
  Search search(ask);
  search.ask(workers);
  CheckpointChoice choice;
  if (const CheckpointCopy* whole = latest_whole(search)) {
    choice.from = whole->tag;
    choice.holders = whole->holders;
  }
  for (const std::string& holder : choice.holders)
    for (const std::string& piece : search.copy_at(holder, choice.from)->pieces)
      choice.directory.push_back({piece, holder});
  if (choice.from < search.committed() && !accept_loss) fail_lost(name, search, search.committed());
  choice.run = search.last_run() + 1;
  return choice;
}

}  // namespace rehearsal
