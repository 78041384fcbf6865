#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "sim/strategies/strategy.h"

namespace rehearsal::sim {
namespace {

constexpr std::string_view kNames[] = {"timed-swarm", "random-walk", "pct",   "pos",
                                       "urw",         "surw",        "delays"};
static_assert(std::size(kNames) == std::size(kStrategyKinds));

constexpr uint64_t kLengthMax = 1'000'000'000;
constexpr uint64_t kDepthMax = 20;
constexpr uint64_t kBoundMax = 9;

// The parameters that a strategy takes, in words.
std::string_view parameters_of(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::pct:
      return "d and k, for example pct:d=3,k=480";
    case StrategyKind::delays:
      return "bound, k and skip, for example delays:skip=17.40";
    case StrategyKind::urw:
    case StrategyKind::surw:
      return "counts of chains, for example urw:s0.1=12,t0.0=3";
    case StrategyKind::timed_swarm:
    case StrategyKind::random_walk:
    case StrategyKind::pos:
      break;
  }
  return "nothing";
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StrategySettings parse() {
    const size_t colon = text_.find(':');
    const auto kind = strategy_named(text_.substr(0, colon));
    if (!kind) throw wrong("there is no such strategy");
    settings_.kind = *kind;
    if (colon == std::string_view::npos) return settings_;
    std::string_view rest = text_.substr(colon + 1);
    while (true) {
      const size_t comma = rest.find(',');
      take(rest.substr(0, comma));
      if (comma == std::string_view::npos) return settings_;
      rest.remove_prefix(comma + 1);
    }
  }

 private:
  std::invalid_argument wrong(const std::string& what) const {
    return std::invalid_argument("'" + std::string(text_) + "': " + what);
  }

  void take(std::string_view parameter) {
    const size_t equals = parameter.find('=');
    const std::string_view key = parameter.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view() : parameter.substr(equals + 1);
    const bool places =
        settings_.kind == StrategyKind::pct || settings_.kind == StrategyKind::delays;
    if (key == "k" && places) return set(settings_.length, key, value, 1, kLengthMax);
    if (key == "d" && settings_.kind == StrategyKind::pct)
      return set(settings_.depth, key, value, 1, kDepthMax);
    if (key == "bound" && settings_.kind == StrategyKind::delays)
      return set(settings_.bound, key, value, 0, kBoundMax);
    if (key == "skip" && settings_.kind == StrategyKind::delays) return take_skips(value);
    const bool counts = settings_.kind == StrategyKind::urw || settings_.kind == StrategyKind::surw;
    if (counts) return take_count(parameter);
    throw wrong("'" + std::string(parameter) + "' is not known; " +
                std::string(name_of(settings_.kind)) + " takes " +
                std::string(parameters_of(settings_.kind)));
  }

  uint64_t number(std::string_view key, std::string_view value, uint64_t min, uint64_t max) const {
    uint64_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || read.ec != std::errc() || read.ptr != value.data() + value.size() ||
        number < min || number > max)
      throw wrong(std::string(key) + " is a whole number from " + std::to_string(min) + " to " +
                  std::to_string(max));
    return number;
  }

  void set(std::optional<uint64_t>& setting, std::string_view key, std::string_view value,
           uint64_t min, uint64_t max) {
    if (setting) throw wrong(std::string(key) + " is given twice");
    setting = number(key, value, min, max);
  }

  void take_skips(std::string_view value) {
    if (!settings_.skips.empty()) throw wrong("skip is given twice");
    while (true) {
      const size_t dot = value.find('.');
      settings_.skips.push_back(number("skip", value.substr(0, dot), 1, kLengthMax));
      if (dot == std::string_view::npos) break;
      value.remove_prefix(dot + 1);
    }
    if (!std::is_sorted(settings_.skips.begin(), settings_.skips.end()))
      throw wrong("the steps of skip are in order, the smallest first");
  }

  void take_count(std::string_view parameter) {
    const auto count = parse_chain_count(parameter);
    if (!count)
      throw wrong("'" + std::string(parameter) + "' is no count; write it like s0.1=12 or " +
                  "s0.1=12/x0.3");
    const auto known = [this](const net_fake::Chain& chain) {
      return std::any_of(settings_.counts.begin(), settings_.counts.end(),
                         [&chain](const ChainCount& other) { return other.chain == chain; });
    };
    if (known(count->chain)) throw wrong(to_string(count->chain) + " is counted twice");
    if (count->parent && !known(*count->parent))
      throw wrong(to_string(*count->parent) + " is not counted in front of " +
                  to_string(count->chain));
    settings_.counts.push_back(*count);
  }

  const std::string_view text_;
  StrategySettings settings_;
};

}  // namespace

std::string_view name_of(StrategyKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<StrategyKind> strategy_named(std::string_view name) {
  for (const StrategyKind kind : kStrategyKinds)
    if (name == name_of(kind)) return kind;
  return std::nullopt;
}

std::string to_string(const StrategySettings& settings) {
  std::string text(name_of(settings.kind));
  char separator = ':';
  const auto add = [&](const std::string& parameter) {
    text += separator + parameter;
    separator = ',';
  };
  if (settings.depth) add("d=" + std::to_string(*settings.depth));
  if (settings.bound) add("bound=" + std::to_string(*settings.bound));
  if (settings.length) add("k=" + std::to_string(*settings.length));
  std::string skips;
  for (const uint64_t step : settings.skips)
    skips += (skips.empty() ? "" : ".") + std::to_string(step);
  if (!skips.empty()) add("skip=" + skips);
  for (const ChainCount& count : settings.counts) add(to_string(count));
  return text;
}

StrategySettings parse_strategy(std::string_view text) { return Parser(text).parse(); }

}  // namespace rehearsal::sim
