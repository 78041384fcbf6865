#include "sim/hunt/environment.h"

#include <charconv>
#include <cstdlib>
#include <functional>
#include <stdexcept>

#include "sim/hunt/commit_seed.h"

namespace rehearsal::sim {
namespace {

// Gives the value to `take`, if there is one; whatever it throws then names the variable.
void read_variable(const char* name, const std::function<void(const std::string&)>& take) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return;
  try {
    take(value);
  } catch (const std::invalid_argument& wrong) {
    throw std::invalid_argument(std::string(name) + ": " + wrong.what());
  }
}

uint64_t parse_positive(const std::string& text) {
  const uint64_t number = parse_whole("", text);
  if (number == 0) throw std::invalid_argument("0: give a whole number from 1");
  return number;
}

void take_shard(const std::string& text, Environment& environment) {
  const size_t slash = text.find('/');
  if (slash != std::string::npos) {
    environment.shard = parse_whole("", text.substr(0, slash));
    environment.shard_count = parse_whole("", text.substr(slash + 1));
  }
  if (slash == std::string::npos || environment.shard >= environment.shard_count)
    throw std::invalid_argument(text + ": give I/N with I from 0 to N-1, for example 0/4");
}

}  // namespace

uint64_t parse_whole(const std::string& name, const std::string& text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end)
    throw std::invalid_argument(name + (name.empty() ? "" : " ") + text + ": give a whole number");
  return number;
}

Environment read_environment() {
  Environment environment;
  read_variable("REHEARSAL_RUN", [&environment](const std::string& text) {
    environment.run = text.starts_with("@") ? read_run(text.substr(1)) : parse_flags(text);
  });
  read_variable("REHEARSAL_COMMIT", [&environment](const std::string& text) {
    environment.first_seed = seed_of_commit(text);
  });
  read_variable("REHEARSAL_SEEDS", [&environment](const std::string& text) {
    environment.seeds = parse_positive(text);
  });
  read_variable("REHEARSAL_SECONDS", [&environment](const std::string& text) {
    environment.seconds = parse_positive(text);
  });
  read_variable("REHEARSAL_SHARD",
                [&environment](const std::string& text) { take_shard(text, environment); });
  read_variable("REHEARSAL_REPORT",
                [&environment](const std::string& text) { environment.report_folder = text; });
  return environment;
}

}  // namespace rehearsal::sim
