#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "core/base/unique_function.h"

namespace rehearsal::record {

// Names what a task runs: a word for the type of its closure, and its tag, that is the same in
// every process of one build, wherever its code was loaded. A task that a destructor posts has a
// tag: which of several threads drops a thing last, and so posts its end, is not the same each
// time.
class CodeNames {
 public:
  [[nodiscard]] uint64_t word_of(const Task& task);

 private:
  [[nodiscard]] uint64_t word_of_type(const void* type);

  std::unordered_map<const void*, uint64_t> words_;
};

// Names the executable that is running, by its bytes: 16 hexadecimal digits. Throws
// std::runtime_error if it cannot be read.
[[nodiscard]] std::string build_of_this_process();

}  // namespace rehearsal::record
