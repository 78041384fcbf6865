#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
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

// The value of a choice that has no override: drawn from the seed, or the benign one, 0.
enum class Otherwise : uint8_t { drawn, benign };

// Makes choices in place of the seed.
class Chooser {
 public:
  virtual ~Chooser() = default;
  // Empty: the choice is made as without a Chooser.
  [[nodiscard]] virtual std::optional<uint64_t> choose(const Key& key, uint64_t n) = 0;
};

// Draws some of the choices of a run anew: one in so many, and which ones the salt says; of the
// kinds of which a run has few, at least one in 32. Written `SALT/N`.
struct Redraw {
  uint64_t salt = 0;
  uint64_t one_in = 1;
};
[[nodiscard]] std::string to_string(const Redraw& redraw);
// Throws std::invalid_argument with a line that says what is wrong.
[[nodiscard]] Redraw parse_redraw(std::string_view text);

// Every choice of a run: the override of its key, else a hash of seed and key, where the last
// redraw that has the key takes the place of the seed. A run is a pure function of the program, the
// seed, the redraws and the overrides.
class KeyedDecisions final : public net_fake::Decisions {
 public:
  // `record`: keeps what is chosen, for `choices`.
  KeyedDecisions(Seed seed, const std::vector<Override>& overrides,
                 Otherwise otherwise = Otherwise::drawn, bool record = false,
                 std::vector<Redraw> redraws = {});

  uint64_t choose(const Key& key, uint64_t n) override;

  // From now on `chooser` is asked about what has no override; null: nobody.
  void set_chooser(Chooser* chooser) { chooser_ = chooser; }

  // Hears of each override when it first decides something; of those that have, at once.
  void set_listener(std::function<void(const Override&)> listener);

  // Keeps a choice that this run did not ask for: it says in other words what was chosen.
  void note(const Key& key, uint64_t value);
  [[nodiscard]] std::vector<Override> notes() const;

  // Whether a choice of this kind is given.
  [[nodiscard]] bool gives(DecisionKind kind) const;

  // From now on each line KEY=VALUE of what is kept is also written here, at once, beginning with
  // what is kept already. Null: nowhere.
  void write_lines_to(std::ostream* lines);

  // Choices made so far.
  [[nodiscard]] uint64_t draws() const { return draws_; }

  // The choices that are not benign, in the order in which they first came up: those that go
  // together in a run are near each other.
  [[nodiscard]] std::vector<Override> choices() const;

  // Overrides whose key has not come up. An override out of its range counts as its remainder.
  [[nodiscard]] std::vector<Key> absent() const;

 private:
  struct Given {
    uint64_t value = 0;
    bool used = false;
  };
  struct Chosen {
    uint64_t value = 0;
    size_t order = 0;  // among all that were chosen
  };
  [[nodiscard]] static std::vector<Override> in_order(const std::map<Key, Chosen>& chosen);
  void write_line(const Override& choice);
  [[nodiscard]] uint64_t value_of(const Key& key, uint64_t n);
  [[nodiscard]] uint64_t hash_for(const Key& key) const;

  const Seed seed_;
  const std::vector<Redraw> redraws_;
  const Otherwise otherwise_;
  std::map<Key, Given> given_;
  std::function<void(const Override&)> listener_;
  const bool recording_;
  std::ostream* lines_ = nullptr;
  Chooser* chooser_ = nullptr;
  std::map<Key, Chosen> chosen_;
  std::map<Key, Chosen> noted_;
  uint64_t draws_ = 0;
};

}  // namespace rehearsal::sim
