#pragma once

#include <functional>
#include <vector>

#include "sim/decisions/keyed_decisions.h"

namespace rehearsal::sim {

// The questions of shrinking: whether a run with these choices, all others benign, still fails
// alike; and whether there is time for another run.
struct ShrinkTrial {
  std::function<bool(const std::vector<Override>&)> fails;
  std::function<bool()> may_go_on;
};

// A smaller list of choices with which the run still fails: none at all, if that is enough. First
// whole kinds of decisions are made benign, then runs of neighbouring ones, halved down to single
// ones (delta debugging: Zeller, Hildebrandt, TSE 2002), over and over until nothing more can go;
// then several events that are held back are replaced by one that is held back for longer; then
// each value that is left is brought down as far as halving goes, and all of it again until nothing
// changes any more. Deterministic; stops early when there is no more time. REQUIRES:
// trial.fails(choices).
[[nodiscard]] std::vector<Override> shrink_choices(std::vector<Override> choices,
                                                   const ShrinkTrial& trial);

}  // namespace rehearsal::sim
