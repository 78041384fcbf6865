// For a word that is not known: what the person probably meant.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rehearsal {

// The known word nearest to `word`, if it is near enough to be a slip of the finger.
[[nodiscard]] std::optional<std::string> nearest(const std::string& word,
                                                 const std::vector<std::string>& known);

// "did you mean 'x'?", or "there are x, y, z" if none is near.
[[nodiscard]] std::string suggestion(const std::string& word,
                                     const std::vector<std::string>& known);

}  // namespace rehearsal
