#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/node/node.h"

namespace rehearsal::record {

// The facts that a replay must know before the first input.
struct RecordHeader {
  std::string build;      // of the program; see code_names.h
  std::string greeting;   // the node's: versions, functions, how LibTorch computes
  int torch_threads = 1;  // LibTorch's, of each operator
  NodeOptions node;       // who it was, and its limits
  // The arguments that the program itself needs to be the same again: for the command line the
  // scenario's name and the flags of `run`.
  std::vector<std::string> arguments;
};

[[nodiscard]] std::string text_of(const RecordHeader& header);
// Nothing if the text says no such thing, or what cannot be: workers that there are none of, more
// than 1,024 threads.
[[nodiscard]] std::optional<RecordHeader> header_of(const std::string& text);

}  // namespace rehearsal::record
