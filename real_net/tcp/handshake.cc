#include "real_net/tcp/handshake.h"

#include <array>
#include <cstring>
#include <type_traits>

#include "core/base/check.h"
#include "core/base/hash.h"

namespace rehearsal::real {
namespace {

constexpr uint32_t kMagic = 0x48534852;  // "RHSH"
constexpr uint16_t kVersion = 6;

// The checksum covers all that precedes it, and the text.
struct HeaderBytes {
  uint32_t magic;
  uint16_t version;
  uint8_t kind;
  uint8_t lane;
  uint32_t from;
  uint32_t to;
  uint64_t incarnation;
  uint64_t token;
  uint64_t last_token;
  uint32_t text_bytes;
  uint32_t reserved;
  uint64_t reserved_word;
  uint64_t run;
  uint64_t checksum;
};
static_assert(sizeof(HeaderBytes) == kHandshakeBytes);
static_assert(std::has_unique_object_representations_v<HeaderBytes>);

uint64_t checksum_of(const HeaderBytes& header, std::string_view text) {
  return hash_bytes(text.data(), text.size(), hash_bytes(&header, offsetof(HeaderBytes, checksum)));
}

// Precedes the text of a hello and of a welcome, on the small lane.
struct PositionBytes {
  uint64_t source;
  uint64_t acknowledged;
  std::array<uint64_t, 2> received;
};
static_assert(std::has_unique_object_representations_v<PositionBytes>);

bool has_position(HandshakeKind kind, Lane lane) {
  return lane == Lane::small && (kind == HandshakeKind::hello || kind == HandshakeKind::welcome);
}

std::string text_of(const Handshake& handshake) {
  if (!has_position(handshake.kind, handshake.lane)) return handshake.text;
  const Position& position = handshake.position;
  const PositionBytes bytes{position.source.value, position.acknowledged, position.received};
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + handshake.text;
}

HeaderBytes to_bytes(const Handshake& handshake, uint32_t text_bytes) {
  HeaderBytes header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.kind = static_cast<uint8_t>(handshake.kind);
  header.lane = static_cast<uint8_t>(handshake.lane);
  header.from = handshake.from.value;
  header.to = handshake.to.value;
  header.incarnation = handshake.incarnation.value;
  header.token = handshake.token;
  header.last_token = handshake.last_token;
  header.run = handshake.run;
  header.text_bytes = text_bytes;
  return header;
}

Error malformed_handshake(std::string text) {
  Error error;
  error.kind = ErrorKind::protocol;
  error.text = "malformed handshake: " + std::move(text);
  return error;
}

}  // namespace

uint64_t run_hash(std::string_view run_id) { return run_id.empty() ? 0 : hash_text(run_id); }

std::string encode_handshake(const Handshake& handshake) {
  REHEARSAL_CHECK(handshake.text.size() <= kHandshakeTextMax, handshake.text.size());
  const std::string text = text_of(handshake);
  HeaderBytes header = to_bytes(handshake, static_cast<uint32_t>(text.size()));
  header.checksum = checksum_of(header, text);
  return std::string(reinterpret_cast<const char*>(&header), sizeof header) + text;
}

bool is_handshake(std::span<const std::byte> header) {
  uint32_t magic = 0;
  if (header.size() < sizeof magic) return false;
  std::memcpy(&magic, header.data(), sizeof magic);
  return magic == kMagic;
}

Result<HandshakeHeader> parse_handshake_header(std::span<const std::byte> bytes) {
  REHEARSAL_CHECK(bytes.size() == kHandshakeBytes, bytes.size());
  HeaderBytes header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic)
    return malformed_handshake("the other end does not speak this protocol");
  if (header.version != kVersion)
    return malformed_handshake("the other end speaks version " + std::to_string(header.version) +
                               " of the protocol, this end version " + std::to_string(kVersion));
  if (header.kind > static_cast<uint8_t>(HandshakeKind::presence))
    return malformed_handshake("unknown kind");
  if (header.lane > static_cast<uint8_t>(Lane::large)) return malformed_handshake("unknown lane");
  const bool positioned =
      has_position(static_cast<HandshakeKind>(header.kind), static_cast<Lane>(header.lane));
  const uint32_t before_text = positioned ? sizeof(PositionBytes) : 0;
  if (header.text_bytes > kHandshakeTextMax + before_text)
    return malformed_handshake("text too long");
  if (header.text_bytes < before_text) return malformed_handshake("no position");
  if (header.kind >= static_cast<uint8_t>(HandshakeKind::question) && header.text_bytes > 0)
    return malformed_handshake("a text where there is none");
  HandshakeHeader parsed;
  parsed.handshake = {.kind = static_cast<HandshakeKind>(header.kind),
                      .lane = static_cast<Lane>(header.lane),
                      .from = {header.from},
                      .to = {header.to},
                      .incarnation = {header.incarnation},
                      .token = header.token,
                      .last_token = header.last_token,
                      .run = header.run,
                      .position = {},
                      .text = {}};
  parsed.text_bytes = header.text_bytes;
  parsed.checksum = header.checksum;
  return parsed;
}

Result<Handshake> finish_handshake(const HandshakeHeader& header, std::string text) {
  if (text.size() != header.text_bytes) return malformed_handshake("short text");
  const HeaderBytes bytes = to_bytes(header.handshake, header.text_bytes);
  if (checksum_of(bytes, text) != header.checksum) return malformed_handshake("bad checksum");
  Handshake handshake = header.handshake;
  if (has_position(handshake.kind, handshake.lane)) {
    PositionBytes position;
    std::memcpy(&position, text.data(), sizeof position);
    handshake.position = {{position.source}, position.acknowledged, position.received};
    text.erase(0, sizeof position);
  }
  handshake.text = std::move(text);
  return handshake;
}

std::string error_to_text(const Error& error) {
  std::string text(1, static_cast<char>(error.kind));
  const auto worker_bytes = static_cast<uint32_t>(error.worker.size());
  text.append(reinterpret_cast<const char*>(&worker_bytes), sizeof worker_bytes);
  text += error.worker;
  text += error.text;
  if (text.size() > kHandshakeTextMax) text.resize(kHandshakeTextMax);
  return text;
}

Error error_from_text(std::string_view text) {
  Error error;
  uint32_t worker_bytes = 0;
  if (text.size() < 1 + sizeof worker_bytes) return malformed_handshake("no reason given");
  const auto kind = static_cast<uint8_t>(text[0]);
  if (kind > static_cast<uint8_t>(kLastErrorKind))
    return malformed_handshake("unknown kind of error");
  error.kind = static_cast<ErrorKind>(kind);
  std::memcpy(&worker_bytes, text.data() + 1, sizeof worker_bytes);
  text.remove_prefix(1 + sizeof worker_bytes);
  if (worker_bytes > text.size()) return malformed_handshake("no reason given");
  error.worker = text.substr(0, worker_bytes);
  error.text = text.substr(worker_bytes);
  return error;
}

}  // namespace rehearsal::real
