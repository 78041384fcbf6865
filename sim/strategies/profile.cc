#include "sim/strategies/profile.h"

#include <charconv>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

using net_fake::Chain;

// By Chain::Kind.
constexpr std::string_view kLetters = "slxtncor";
static_assert(kLetters.size() == static_cast<size_t>(Chain::Kind::rest) + 1);

template <class Number>
bool take_number(std::string_view& rest, Number& number) {
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
  return read.ec == std::errc();
}

bool take(std::string_view& rest, char letter) {
  if (rest.empty() || rest.front() != letter) return false;
  rest.remove_prefix(1);
  return true;
}

std::optional<Chain> take_chain(std::string_view& rest) {
  const size_t kind = rest.empty() ? std::string_view::npos : kLetters.find(rest.front());
  if (kind == std::string_view::npos) return std::nullopt;
  rest.remove_prefix(1);
  Chain chain{.kind = static_cast<Chain::Kind>(kind)};
  if (!take_number(rest, chain.first) || !take(rest, '.') || !take_number(rest, chain.second))
    return std::nullopt;
  return chain;
}

}  // namespace

std::string to_string(const Chain& chain) {
  return kLetters[static_cast<size_t>(chain.kind)] + std::to_string(chain.first) + "." +
         std::to_string(chain.second);
}

std::string to_string(const ChainCount& count) {
  return to_string(count.chain) + "=" + std::to_string(count.events) +
         (count.parent ? "/" + to_string(*count.parent) : "");
}

std::optional<ChainCount> parse_chain_count(std::string_view text) {
  constexpr uint64_t kEventsMax = 1'000'000'000;
  const auto chain = take_chain(text);
  if (!chain || !take(text, '=')) return std::nullopt;
  ChainCount count{.chain = *chain, .events = 0, .parent = std::nullopt};
  if (!take_number(text, count.events) || count.events > kEventsMax) return std::nullopt;
  if (take(text, '/')) {
    count.parent = take_chain(text);
    if (!count.parent) return std::nullopt;
  }
  if (!text.empty()) return std::nullopt;
  return count;
}

size_t Profile::place_of(const Chain& chain) {
  const auto [place, fresh] = places_.try_emplace(chain, counts_.size());
  if (fresh) counts_.push_back({.chain = chain, .events = 0, .parent = running_});
  return place->second;
}

std::vector<ChainCount> Profile::counts() const {
  std::vector<ChainCount> counts = counts_;
  std::erase_if(counts, [](const ChainCount& count) { return count.events == 0; });
  return counts;
}

void Profile::scheduled(const Chain& chain) { static_cast<void>(place_of(chain)); }

void Profile::happened(const Chain& chain) {
  ++counts_[place_of(chain)].events;
  running_ = chain;
}

}  // namespace rehearsal::sim
