#pragma once

#include <cstdint>
#include <vector>

namespace rehearsal {

// Whether keys with these hashes lie so close together in LibTorch's hash table that it would grow
// to more than 16 places for each. It doubles itself until no key is further from its place than
// the logarithm of its size: forty keys of one hash, which are soon made, would take it to 2^40
// places. Of honest keys fewer than one set in 10^9 is so crowded.
[[nodiscard]] bool are_crowded(std::vector<uint64_t> hashes);

}  // namespace rehearsal
