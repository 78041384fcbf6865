#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

namespace rehearsal::sim {

// Where in the program's own source the calling stack is: for those who read how a run came about.
// A place is a function and, if the program was built with line numbers (-g1 does), file and line.
// Functions of this library, of LibTorch and of the C++ library are left out. It remembers what it
// has looked up: the first time costs a tenth of a second, later ones some microseconds.
class SourcePlaces {
 public:
  // A line for each place, innermost first: the function, a space, the file with its path, a colon,
  // the line. Empty: there is none.
  [[nodiscard]] std::string calling_stack();

  // The same of a stack that is known by its return addresses, innermost first, as backtrace()
  // gives them.
  [[nodiscard]] std::string stack_of(std::span<void* const> return_addresses);

 private:
  const std::vector<std::string>& at(void* return_address);

  std::map<void*, std::vector<std::string>> known_;
};

// "training.cc:27", of the first place of such a stack that has a line; empty: none has.
[[nodiscard]] std::string short_place(const std::string& stack);

}  // namespace rehearsal::sim
