// Gives a process addresses that another one does not have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rehearsal::command_line {

// Objects allocated one after the other have ascending addresses in every process, wherever the
// system has put the heap: an order by address would look like one that repeats. Here the small
// blocks that are free lie in a drawn order, and are given out in it.
class ScatteredMemory {
 public:
  // Also moves the heap and the region of large blocks, where the system does not do that.
  ScatteredMemory();

  // Before each run; another `seed` gives another order. Also leaves bytes on the stack below the
  // caller's, for those who read before they write.
  void scatter(uint64_t seed);

 private:
  using Block = std::unique_ptr<std::byte[]>;
  std::vector<Block> kept_;  // between the free ones, which would become one block otherwise
};

}  // namespace rehearsal::command_line
