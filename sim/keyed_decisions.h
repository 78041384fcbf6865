#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"
#include "net_fake/decisions.h"

namespace rehearsal::sim {

using net_fake::DecisionKind;
using net_fake::Key;
using net_fake::LifeId;

// A decision whose value is given instead of drawn. Written `KEY=VALUE`, as Key is written.
struct Override {
  Key key;
  uint64_t value = 0;
};
[[nodiscard]] std::string to_string(const Override& override);
// Throws std::invalid_argument with a line that says what is wrong.
[[nodiscard]] Override parse_override(std::string_view text);

// What a choice is that has no override: drawn from the seed, or the benign one, 0.
enum class Otherwise : uint8_t { drawn, benign };

// Makes choices in place of the seed.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Empty: the choice is made as without a Chooser.
  [[nodiscard]] virtual std::optional<uint64_t> choose(const Key& key, uint64_t n) = 0;
};

// Every choice of a run: the override of its key, else a hash of seed and key. A run is a pure
// function of the program, the seed and the overrides.
class KeyedDecisions final : public net_fake::Decisions {
 public:
  // `record`: keeps what is chosen, for `choices`.
  KeyedDecisions(Seed seed, const std::vector<Override>& overrides,
                 Otherwise otherwise = Otherwise::drawn, bool record = false);

  uint64_t choose(const Key& key, uint64_t n) override;

  // From now on `chooser` is asked about what has no override; null: nobody.
  void set_chooser(Chooser* chooser) { chooser_ = chooser; }

  // Hears of each override when it first decides something; of those that have, at once.
  void set_listener(std::function<void(const Override&)> listener);

  // Choices made so far.
  [[nodiscard]] uint64_t draws() const { return draws_; }

  // What was chosen and is not benign, by key.
  [[nodiscard]] std::vector<Override> choices() const;

  // Overrides whose key has not come up. An override out of its range counts as its remainder.
  [[nodiscard]] std::vector<Key> absent() const;

 private:
  struct Given {
    uint64_t value = 0;
    bool used = false;
  };
  [[nodiscard]] uint64_t value_of(const Key& key, uint64_t n);

  const Seed seed_;
  const Otherwise otherwise_;
  std::map<Key, Given> given_;
  std::function<void(const Override&)> listener_;
  const bool recording_;
  Chooser* chooser_ = nullptr;
  std::map<Key, uint64_t> chosen_;
  uint64_t draws_ = 0;
};

}  // namespace rehearsal::sim
