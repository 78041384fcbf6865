#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace rehearsal::real {

// The facts that all workers of one group agree on. The first to come puts them into the store, the
// others compare; and whoever comes by mistake is told what runs there.
struct GroupCard {
  std::string run;  // the id of the run; empty: it has none
  bool dynamic = false;
  std::vector<std::string> names;  // of all workers, in rank order
  std::string libtorch;            // version
  std::string functions;           // FunctionRegistry::describe
  std::map<std::string, std::string> settings;
  std::string begun;  // when and by whom, for people; not compared
};

// The settings of a program (WorkerOptions::must_agree) as a card has them: of a value that is
// long, or no line of plain text, its beginning, its size and its hash (XXH3). An error
// (bad_arguments) if they are too many, or a name is too long.
[[nodiscard]] Result<std::map<std::string, std::string>> card_settings(
    const std::map<std::string, std::string>& must_agree);

// "2026-11-24 06:45:12 UTC by rank 0 ('ps'), process 17 on gpu3": now, by this process.
[[nodiscard]] std::string begun_now(const std::string& worker);

[[nodiscard]] std::string encode(const GroupCard& card);
// Nothing if it is none.
[[nodiscard]] std::optional<GroupCard> decode_card(const std::string& text);

// The first thing in which they differ, with both values ("peer_timeout is 30 s here, 5 s there");
// nothing if a worker with our card may join. Runs are not compared.
[[nodiscard]] std::optional<std::string> difference(const GroupCard& ours, const GroupCard& theirs);

// "a static group of 2 workers ('ps', 'trainer'), run 'a7', begun …".
[[nodiscard]] std::string describe(const GroupCard& card);

// "'a', 'b'", of the first few.
[[nodiscard]] std::string listed(const std::vector<std::string>& names);

// "run 'a7'", or "a run without an id".
[[nodiscard]] std::string run_in_words(const std::string& run);

}  // namespace rehearsal::real
