#include "sim/decisions/keyed_decisions.h"

#include <algorithm>
#include <charconv>
#include <ostream>
#include <stdexcept>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

// Distinguishes what a redraw draws from what it selects.
constexpr uint64_t kDrawnAnew = 0x726564726177;

constexpr uint64_t kRareOneIn = 32;

// Whether a run has few choices of this kind, each of which matters for all of it.
bool is_rare(DecisionKind kind) {
  switch (kind) {
    case DecisionKind::swarm:
    case DecisionKind::crash_victim:
    case DecisionKind::crash_moment:
    case DecisionKind::restart:
    case DecisionKind::partition_shape:
    case DecisionKind::partition_length:
    case DecisionKind::plan:
      return true;
    default:
      return false;
  }
}

bool read_number(std::string_view text, uint64_t& number) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && read.ec == std::errc() && read.ptr == text.data() + text.size();
}

}  // namespace

std::string to_string(const Redraw& redraw) {
  return std::to_string(redraw.salt) + "/" + std::to_string(redraw.one_in);
}

Redraw parse_redraw(std::string_view text) {
  const size_t slash = text.find('/');
  Redraw redraw;
  if (slash == std::string_view::npos || !read_number(text.substr(0, slash), redraw.salt) ||
      !read_number(text.substr(slash + 1), redraw.one_in) || redraw.one_in == 0)
    throw std::invalid_argument("'" + std::string(text) +
                                "' is no redraw; write it like 77/400: one choice in 400");
  return redraw;
}

std::string to_string(const Override& override) {
  return net_fake::to_string(override.key) + "=" + std::to_string(override.value);
}

Override parse_override(std::string_view text) {
  const size_t equals = text.find('=');
  const auto wrong = [text](const char* what) {
    return std::invalid_argument("'" + std::string(text) + "' is no override: " + what +
                                 "; write it like cut:1.0>0.0#7.0=1");
  };
  if (equals == std::string_view::npos) throw wrong("it has no '='");
  const auto key = net_fake::parse_key(text.substr(0, equals));
  if (!key) throw wrong("its key cannot be read");
  Override override{.key = *key};
  const std::string_view value = text.substr(equals + 1);
  const auto read = std::from_chars(value.data(), value.data() + value.size(), override.value);
  if (read.ec != std::errc() || read.ptr != value.data() + value.size() || value.empty())
    throw wrong("its value is no number");
  return override;
}

KeyedDecisions::KeyedDecisions(Seed seed, const std::vector<Override>& overrides,
                               Otherwise otherwise, bool record, std::vector<Redraw> redraws)
    : seed_(seed), redraws_(std::move(redraws)), otherwise_(otherwise), recording_(record) {
  for (const Override& override : overrides) given_[override.key].value = override.value;
}

uint64_t KeyedDecisions::choose(const Key& key, uint64_t n) {
  REHEARSAL_CHECK(n > 0);
  ++draws_;
  const uint64_t value = value_of(key, n);
  if (recording_ && value != 0) {
    const bool is_new = chosen_.try_emplace(key, Chosen{value, chosen_.size()}).second;
    if (is_new && lines_ != nullptr) write_line({key, value});
  }
  return value;
}

uint64_t KeyedDecisions::value_of(const Key& key, uint64_t n) {
  if (!given_.empty()) {
    const auto found = given_.find(key);
    if (found != given_.end()) {
      if (!std::exchange(found->second.used, true) && listener_)
        listener_({found->first, found->second.value});
      return found->second.value % n;
    }
  }
  if (chooser_ != nullptr)
    if (const auto chosen = chooser_->choose(key, n)) return *chosen;
  if (otherwise_ == Otherwise::benign || key.kind == DecisionKind::hold) return 0;
  // The high half of the product: uniform for every n that is small against 2^64.
  return static_cast<uint64_t>(static_cast<unsigned __int128>(hash_for(key)) * n >> 64);
}

void KeyedDecisions::set_listener(std::function<void(const Override&)> listener) {
  listener_ = std::move(listener);
  for (const auto& [key, given] : given_)
    if (given.used) listener_({key, given.value});
}

uint64_t KeyedDecisions::hash_for(const Key& key) const {
  for (auto redraw = redraws_.rbegin(); redraw != redraws_.rend(); ++redraw) {
    const uint64_t one_in =
        is_rare(key.kind) ? std::min(redraw->one_in, kRareOneIn) : redraw->one_in;
    if (net_fake::hash_of(Seed{redraw->salt}, key) % one_in == 0)
      return net_fake::hash_of(Seed{mix(redraw->salt, kDrawnAnew)}, key);
  }
  return net_fake::hash_of(seed_, key);
}

bool KeyedDecisions::gives(DecisionKind kind) const {
  return std::any_of(given_.begin(), given_.end(),
                     [kind](const auto& given) { return given.first.kind == kind; });
}

void KeyedDecisions::note(const Key& key, uint64_t value) {
  noted_.try_emplace(key, Chosen{0, noted_.size()}).first->second.value = value;
  if (lines_ != nullptr) write_line({key, value});
}

void KeyedDecisions::write_lines_to(std::ostream* lines) {
  lines_ = lines;
  if (lines_ == nullptr) return;
  for (const Override& choice : choices()) write_line(choice);
  for (const Override& choice : notes()) write_line(choice);
}

void KeyedDecisions::write_line(const Override& choice) {
  *lines_ << to_string(choice) << '\n' << std::flush;
}

std::vector<Override> KeyedDecisions::choices() const { return in_order(chosen_); }

std::vector<Override> KeyedDecisions::notes() const { return in_order(noted_); }

// Nothing is ever taken out: the places are 0 to the size.
std::vector<Override> KeyedDecisions::in_order(const std::map<Key, Chosen>& chosen) {
  std::vector<Override> overrides(chosen.size());
  for (const auto& [key, choice] : chosen) overrides[choice.order] = {key, choice.value};
  return overrides;
}

std::vector<Key> KeyedDecisions::absent() const {
  std::vector<Key> keys;
  for (const auto& [key, given] : given_)
    if (!given.used) keys.push_back(key);
  return keys;
}

}  // namespace rehearsal::sim
