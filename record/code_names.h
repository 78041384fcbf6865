#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace rehearsal::record {

// Names what a task runs: a word for the type of its closure that is the same in every process of
// one build, wherever its code was loaded.
class CodeNames {
 public:
  // `type`: UniqueFunction::type.
  [[nodiscard]] uint64_t word_of(const void* type);

 private:
  std::unordered_map<const void*, uint64_t> words_;
};

// Names the executable that is running, by its bytes: 16 hexadecimal digits. Throws
// std::runtime_error if it cannot be read.
[[nodiscard]] std::string build_of_this_process();

}  // namespace rehearsal::record
