#pragma once

#include <optional>
#include <string>

#include "sim/explain/story.h"

namespace rehearsal::sim {

// Compares a run that fails with one that holds and is as like it as could be found: the first two
// events of one worker whose order differs, before the failure. The program's own events come
// first: calls, answers, the starts of its functions; if all these are equal, the library's own
// messages; only then links that come and go, which say little. Events are known by what they are
// about (worker, life, kind, peer, causal id, text), not by their time or number. Where the second
// comes later in the failing run, and several events that it comes behind would come behind it in
// the one that holds, the first of the pair is the one of these that has most to do with it: it was
// sent by somebody who could know of the second, and so has overtaken it, or it is about the same
// call, reference or context. `decision` is what the two runs differ in, for the text. Empty if
// every worker took in the same, in the same order, until the failure.
//
// The pair `decides` if the run that holds makes all calls that the program made before the
// failure, and the two have to do with each other: both are about the same call, reference or
// context, or about two that one caller has made one right behind the other, or one message has
// overtaken another one of its sender. Where the program's own events part
// without that, messages that part before them are looked at.
//
// The idea of a critical pair, two adjacent dependent events whose swap decides, is Hermit's
// (Meta, 2022); comparing per worker is enough here, as only events of one worker depend on each
// other directly.
[[nodiscard]] std::optional<CriticalPair> critical_pair(const Chronicle& failing,
                                                        const Chronicle& holding,
                                                        const std::string& decision);

// Of two pairs of one failing run: the one that decides; then the one about the program rather than
// about links; then a true exchange of two events rather than the presence of one; then the one
// nearer to the failure.
[[nodiscard]] bool is_better(const Chronicle& failing, const CriticalPair& one,
                             const CriticalPair& other);

// The pair of another failing run, by the names of its events; empty if the first does not happen
// there or they come the other way round.
[[nodiscard]] std::optional<CriticalPair> same_pair_in(const Chronicle& other,
                                                       const CriticalPair& pair,
                                                       const Chronicle& chronicle);

}  // namespace rehearsal::sim
