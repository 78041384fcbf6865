#pragma once

#include <optional>
#include <string>

#include "sim/explain/story.h"

namespace rehearsal::sim {

// Compares a run that fails with one that holds and is as like it as could be found: the first two
// events of one worker whose order differs. Events are known by what they are about (worker, life,
// kind, peer, causal id, text), not by their time or number. `decision` is what the two runs differ
// in, for the text. Empty if every worker took in the same, in the same order, until the failure.
//
// The idea of a critical pair, two adjacent dependent events whose swap decides, is Hermit's
// (Meta, 2022); comparing per worker is enough here, as only events of one worker depend on each
// other directly.
[[nodiscard]] std::optional<CriticalPair> critical_pair(const Chronicle& failing,
                                                        const Chronicle& holding,
                                                        const std::string& decision);

// The pair of another failing run, by the names of its events; empty if the first does not happen
// there or they come the other way round.
[[nodiscard]] std::optional<CriticalPair> same_pair_in(const Chronicle& other,
                                                       const CriticalPair& pair,
                                                       const Chronicle& chronicle);

}  // namespace rehearsal::sim
