#include "core/autograd/node_makers.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace rehearsal {

SequencePoint SequencePoint::here() {
  return {at::RecordFunction::currentThreadId(), at::sequence_number::peek()};
}

const NodeRun* MakerTable::find(uint64_t thread, uint64_t number) const {
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return nullptr;
  const auto& [full, last] = found->second;
  const Chunk* chunk = last.get();
  if (chunk->empty() || number < chunk->front().first) {
    const auto behind = std::upper_bound(
        full->begin(), full->end(), number,
        [](uint64_t wanted, const auto& candidate) { return wanted < candidate->front().first; });
    if (behind == full->begin()) return nullptr;
    chunk = std::prev(behind)->get();
  }
  const auto behind =
      std::upper_bound(chunk->begin(), chunk->end(), number,
                       [](uint64_t wanted, const NodeRun& run) { return wanted < run.first; });
  if (behind == chunk->begin()) return nullptr;
  const NodeRun& run = *std::prev(behind);
  return run.holds(number) ? &run : nullptr;
}

void NodeMakers::note(const CausalId& maker, const SequencePoint& from, const SequencePoint& to) {
  REHEARSAL_CHECK(from.thread == to.thread, from.thread, to.thread);
  REHEARSAL_CHECK(from.next <= to.next, from.next, to.next);
  if (from.next == to.next) return;
  Runs& runs = threads_[from.thread];
  runs.shared.last = nullptr;
  if (!runs.last.empty()) {
    NodeRun& newest = runs.last.back();
    REHEARSAL_CHECK(newest.end <= from.next, newest.end, from.next);
    if (newest.end == from.next && newest.maker == maker) {
      newest.end = to.next;
      return;
    }
  }
  if (runs.last.size() == kChunkRuns) seal_chunk(runs);
  runs.last.push_back({from.next, to.next, maker});
}

void NodeMakers::seal_chunk(Runs& runs) {
  if (runs.full.size() * kChunkRuns >= kRunsMax)
    runs.full.erase(runs.full.begin(), runs.full.begin() + runs.full.size() / 2);
  runs.full.push_back(std::make_shared<const MakerTable::Chunk>(std::exchange(runs.last, {})));
  runs.last.reserve(kChunkRuns);
  runs.shared.full = nullptr;
}

MakerTable NodeMakers::table() const {
  MakerTable table;
  for (const auto& [thread, runs] : threads_) {
    MakerTable::Runs& shared = runs.shared;
    if (!shared.full) shared.full = std::make_shared<const decltype(runs.full)>(runs.full);
    if (!shared.last) shared.last = std::make_shared<const MakerTable::Chunk>(runs.last);
    table.threads_.emplace(thread, shared);
  }
  return table;
}

}  // namespace rehearsal
