#include "net_fake/decisions.h"

#include <array>
#include <charconv>

#include "core/base/check.h"

namespace rehearsal::net_fake {
namespace {

constexpr std::array<std::string_view, kDecisionKinds> kNames = {"latency",
                                                                 "retransmission",
                                                                 "cut",
                                                                 "partition",
                                                                 "partition_shape",
                                                                 "partition_member",
                                                                 "partition_length",
                                                                 "clog",
                                                                 "clog_shape",
                                                                 "clog_length",
                                                                 "corruption",
                                                                 "flipped_bit",
                                                                 "connect_latency",
                                                                 "refusal",
                                                                 "hang",
                                                                 "back_off",
                                                                 "lost_suffix",
                                                                 "notice_latency",
                                                                 "silence",
                                                                 "heal_latency",
                                                                 "start",
                                                                 "resume",
                                                                 "timer",
                                                                 "boot",
                                                                 "pause",
                                                                 "pause_length",
                                                                 "clock_jump",
                                                                 "clock_jump_length",
                                                                 "swarm",
                                                                 "crash_victim",
                                                                 "crash_moment",
                                                                 "restart",
                                                                 "pick",
                                                                 "priority",
                                                                 "plan",
                                                                 "short_life",
                                                                 "vacancy",
                                                                 "madness",
                                                                 "lie",
                                                                 "device",
                                                                 "lending",
                                                                 "copied_parts",
                                                                 "hold"};

constexpr uint64_t packed(const LifeId& life) {
  return uint64_t{life.worker.value} << 32 | life.life;
}

void append(std::string& text, uint64_t number, int base = 10) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
  text.append(digits.data(), end);
}

void append(std::string& text, const LifeId& life) {
  append(text, life.worker.value);
  text += '.';
  append(text, life.life);
}

// Reads a key's text from left to right; `ok` turns false at the first thing that does not fit.
struct Reader {
  std::string_view rest;
  bool ok = true;

  bool take(char letter) {
    if (rest.empty() || rest.front() != letter) return false;
    rest.remove_prefix(1);
    return true;
  }
  uint64_t number(int base = 10) {
    uint64_t value = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
    ok = ok && read.ec == std::errc();
    rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
    return value;
  }
  LifeId life() {
    LifeId id;
    id.worker.value = static_cast<uint32_t>(number());
    ok = ok && take('.');
    id.life = static_cast<uint32_t>(number());
    return id;
  }
};

std::optional<DecisionKind> kind_named(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (kNames[i] == name) return static_cast<DecisionKind>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(DecisionKind kind) {
  const auto index = static_cast<size_t>(kind);
  REHEARSAL_CHECK(index < kNames.size(), index);
  return kNames[index];
}

uint64_t hash_of(Seed seed, const Key& key) {
  uint64_t hash = mix(seed.value + (static_cast<uint64_t>(key.kind) << 56), packed(key.subject));
  hash = mix(hash ^ packed(key.object));
  hash = mix(hash ^ key.place.low ^ (key.place.high << 1));
  return mix(hash ^ key.number ^ (key.occurrence << 40));
}

std::string to_string(const Key& key) {
  std::string text(name_of(key.kind));
  text += ':';
  if (key.subject != LifeId{}) append(text, key.subject);
  if (key.object != LifeId{}) {
    text += '>';
    append(text, key.object);
  }
  if (key.place != Hash128{}) {
    text += '@';
    append(text, key.place.high, 16);
    text += '-';
    append(text, key.place.low, 16);
  }
  text += '#';
  append(text, key.number);
  text += '.';
  append(text, key.occurrence);
  return text;
}

std::optional<Key> parse_key(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto kind = kind_named(text.substr(0, colon));
  if (!kind) return std::nullopt;
  Key key{.kind = *kind};
  Reader reader{text.substr(colon + 1)};
  if (!reader.rest.empty() && reader.rest.front() >= '0' && reader.rest.front() <= '9')
    key.subject = reader.life();
  if (reader.take('>')) key.object = reader.life();
  if (reader.take('@')) {
    key.place.high = reader.number(16);
    reader.ok = reader.ok && reader.take('-');
    key.place.low = reader.number(16);
  }
  reader.ok = reader.ok && reader.take('#');
  key.number = reader.number();
  reader.ok = reader.ok && reader.take('.');
  key.occurrence = reader.number();
  if (!reader.ok || !reader.rest.empty()) return std::nullopt;
  return key;
}

}  // namespace rehearsal::net_fake
