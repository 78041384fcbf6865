#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

// How hard the tests search. With each change they try what it takes to find what they are for;
// REHEARSAL_EFFORT=10 makes those searches ten times as long that have no end of their own.
namespace rehearsal {

inline uint64_t effort() {
  const char* said = std::getenv("REHEARSAL_EFFORT");
  return said == nullptr ? 1 : std::max<uint64_t>(1, std::strtoull(said, nullptr, 10));
}

// How many seeds, or other draws, to try.
inline uint64_t tries(uint64_t few) { return few * effort(); }

// Which of many cases in a row to try: each so many-th; with enough effort all of them.
inline uint64_t every(uint64_t wide) { return std::max<uint64_t>(1, wide / effort()); }

}  // namespace rehearsal
