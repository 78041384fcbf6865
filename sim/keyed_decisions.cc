#include "sim/keyed_decisions.h"

#include <charconv>
#include <stdexcept>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::sim {

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
                               Otherwise otherwise, bool record)
    : seed_(seed), otherwise_(otherwise), recording_(record) {
  for (const Override& override : overrides) given_[override.key].value = override.value;
}

uint64_t KeyedDecisions::choose(const Key& key, uint64_t n) {
  REHEARSAL_CHECK(n > 0);
  ++draws_;
  const uint64_t value = value_of(key, n);
  if (recording_ && value != 0) chosen_[key] = value;
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
  if (otherwise_ == Otherwise::benign) return 0;
  // The high half of the product: uniform for every n that is small against 2^64.
  return static_cast<uint64_t>(static_cast<unsigned __int128>(net_fake::hash_of(seed_, key)) * n >>
                               64);
}

void KeyedDecisions::set_listener(std::function<void(const Override&)> listener) {
  listener_ = std::move(listener);
  for (const auto& [key, given] : given_)
    if (given.used) listener_({key, given.value});
}

std::vector<Override> KeyedDecisions::choices() const {
  std::vector<Override> choices;
  for (const auto& [key, value] : chosen_) choices.push_back({key, value});
  return choices;
}

std::vector<Key> KeyedDecisions::absent() const {
  std::vector<Key> keys;
  for (const auto& [key, given] : given_)
    if (!given.used) keys.push_back(key);
  return keys;
}

}  // namespace rehearsal::sim
