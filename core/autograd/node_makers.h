#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/base/ids.h"

namespace rehearsal {

// Where the calling thread stands in LibTorch's numbering of autograd nodes, which counts for each
// thread by itself.
struct SequencePoint {
  uint64_t thread = 0;
  uint64_t next = 0;  // the number that the thread's next node will get

  [[nodiscard]] static SequencePoint here();
};

// Consecutive nodes of one thread that one execution made: numbers first … end − 1.
struct NodeRun {
  uint64_t first = 0;
  uint64_t end = 0;
  CausalId maker;  // what started the execution

  [[nodiscard]] bool holds(uint64_t number) const { return first <= number && number < end; }
};

// Which execution made a node. An immutable picture of NodeMakers, so that a walk can read it off
// the strand. Copying is cheap.
class MakerTable {
 public:
  // The run that holds this node; null if its maker is unknown.
  [[nodiscard]] const NodeRun* find(uint64_t thread, uint64_t number) const;
  [[nodiscard]] bool empty() const { return threads_.empty(); }

 private:
  friend class NodeMakers;
  using Chunk = std::vector<NodeRun>;  // in ascending order
  struct Runs {
    std::shared_ptr<const std::vector<std::shared_ptr<const Chunk>>> full;
    std::shared_ptr<const Chunk> last;
  };
  std::map<uint64_t, Runs> threads_;
};

// Remembers which execution made which nodes of the autograd graphs of one worker. Sums of
// gradients are ordered by it (Note [Canonical sums] in graph_plan.h). Lives on the worker's
// strand.
//
// Take a SequencePoint on the execution's own thread where it starts or resumes, and another where
// it parks, ends or hands tensors to anybody else; note what lies between before anybody can walk
// there. Nodes of nobody's runs count as made by one unknown execution that came before all others.
// A thread's oldest runs are forgotten beyond kRunsMax.
class NodeMakers {
 public:
  static constexpr size_t kChunkRuns = 128;
  static constexpr size_t kRunsMax = size_t{1} << 18;

  // `maker` is what started the execution. Both points are of one thread, and nothing noted before
  // reaches beyond `from`.
  void note(const CausalId& maker, const SequencePoint& from, const SequencePoint& to);

  [[nodiscard]] MakerTable table() const;

 private:
  struct Runs {
    std::vector<std::shared_ptr<const MakerTable::Chunk>> full;
    MakerTable::Chunk last;
    // The runs that table() handed out; empty again once they are out of date.
    mutable MakerTable::Runs shared;
  };
  void seal_chunk(Runs& runs);

  std::map<uint64_t, Runs> threads_;
};

// True if what `first` names comes before what `second` names in a canonical sum: latest first,
// without regard to the incarnation.
[[nodiscard]] inline bool sums_before(const CausalId& first, const CausalId& second) {
  if (first.path != second.path) return first.path > second.path;
  return first.ordinal > second.ordinal;
}

}  // namespace rehearsal
