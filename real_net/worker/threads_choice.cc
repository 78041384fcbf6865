#include "real_net/worker/threads_choice.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <thread>

namespace rehearsal::real {

Result<uint32_t> choose_worker_threads(std::optional<uint32_t> given,
                                       const Environment& environment) {
  constexpr const char* kVariable = "REHEARSAL_WORKER_THREADS";
  constexpr uint32_t kMost = 1024;
  if (given) return *given;
  const std::string chosen = environment(kVariable).value_or("");
  if (chosen.empty()) return std::max(2u, std::thread::hardware_concurrency());
  uint32_t number = 0;
  const char* const end = chosen.data() + chosen.size();
  const auto [stop, error] = std::from_chars(chosen.data(), end, number);
  if (error != std::errc() || stop != end || number > kMost)
    return wrong_arguments(kVariable + ("=" + chosen) +
                           ": type a number from 0 (functions run on the main thread, while it "
                           "waits) to 1024");
  return number;
}

}  // namespace rehearsal::real
