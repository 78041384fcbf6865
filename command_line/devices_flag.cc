#include "command_line/devices_flag.h"

#include <charconv>
#include <string_view>

#include "command_line/wrong_use.h"
#include "core/base/hash.h"

namespace rehearsal::command_line {
namespace {

constexpr const char* kDrawn = "drawn";
constexpr std::string_view kCuda = "cuda:";
constexpr int kDrawnMax = 4;
constexpr int kMax = 64;  // that LibTorch knows of one kind

std::string names_of_users(const std::vector<Scenario>& scenarios) {
  std::string names;
  for (const Scenario& scenario : scenarios)
    if (scenario.uses_devices) names += (names.empty() ? "" : ", ") + scenario.name;
  return names.empty() ? "none of the others does" : "these do: " + names;
}

}  // namespace

bool are_of_cuda(const std::string& text) { return text.starts_with(kCuda); }

std::string parse_devices(const std::string& text, bool are_processes, const Scenario& scenario,
                          const std::vector<Scenario>& scenarios) {
  if (text.empty()) return "";
  if (!scenario.uses_devices)
    throw WrongUse("--devices " + text + ": " + scenario.name + " places no tensor on a device; " +
                   names_of_users(scenarios));
  if (text == kDrawn) return text;
  const std::string kind(are_of_cuda(text) ? kCuda : "");
  if (!kind.empty() && !are_processes)
    throw WrongUse("--devices " + text + " needs --net tcp: in a simulated run devices are, too");
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + kind.size(), end, count);
  if (error != std::errc{} || stop != end || count < 1 || count > kMax)
    throw WrongUse("--devices " + text + ": type a whole number from 1 to " + std::to_string(kMax) +
                   ", drawn, or cuda:N for so many GPUs");
  return kind + std::to_string(count);
}

int devices_meant(const std::string& text, Seed seed) {
  if (text.empty()) return 0;
  if (are_of_cuda(text)) return std::stoi(text.substr(kCuda.size()));
  if (text != kDrawn) return std::stoi(text);
  return 1 + static_cast<int>(mix(seed.value, hash_text("devices")) % kDrawnMax);
}

}  // namespace rehearsal::command_line
