#pragma once

#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/values/device_map.h"

namespace rehearsal {

// The facts that a node gives about itself when a link is made: its name, which of its lives this
// is, the number of workers it expects, how long it bears silence, the LibTorch it runs on, and
// every registered function. A text, so that a difference can be shown.
struct Greeting {
  std::string name;
  uint32_t life = 0;  // less than kLivesMax
  size_t world_size = 0;
  bool dynamic = false;     // the group is
  Duration peer_timeout{};  // silence after which it takes a peer for dead; zero: not told
  std::string libtorch;     // version
  std::string isa;          // instruction set that LibTorch chose
  int threads = 1;          // intra-op
  WorkerDevices devices;
  std::string functions;  // FunctionRegistry::describe
};

[[nodiscard]] Greeting greeting_of_this_process(std::string name, size_t world_size,
                                                std::string functions);
[[nodiscard]] std::string to_text(const Greeting& greeting);
// Fails with kind protocol if the text is no greeting, or of a life that no worker has.
[[nodiscard]] Result<Greeting> greeting_from_text(const std::string& text);

// Why the two cannot work together, naming the first function that differs; or fine.
[[nodiscard]] Status check_greeting(const Greeting& ours, const Greeting& theirs,
                                    const std::string& expected_name);

// The first line in which two texts of registered functions differ: "here …, there …".
[[nodiscard]] std::string first_difference(const std::string& ours, const std::string& theirs);

// Whether both compute the same bits: LibTorch, instruction set and thread count are equal.
[[nodiscard]] bool same_arithmetic(const Greeting& ours, const Greeting& theirs);

}  // namespace rehearsal
