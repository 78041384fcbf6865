#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/frame.h"
#include "core/base/transport.h"

namespace rehearsal::real {

// The kinds of record that the two ends of a connection exchange outside of frames. Each has a
// header of kHandshakeBytes and a text. The one who connects says `hello` on both lanes; the other
// one answers each with `welcome`, `refusal` or `retry`.
enum class HandshakeKind : uint8_t {
  hello,    // on the small lane the position, and text: the greeting; on the large one text: where
            // it is reached. The text is empty if the other end has it from an earlier link
  welcome,  // the same of the other end: the link stands
  refusal,  // text: an error. Do not connect again
  retry,    // not now, or not without the texts
  closing,  // text: an error. The last on a lane: the link is closed for good
  // Not of a link, and without a text: somebody asks whether a worker runs there, and it answers.
  question,
  presence,
};

struct Handshake {
  HandshakeKind kind = HandshakeKind::hello;
  Lane lane = Lane::small;
  WorkerId from;
  WorkerId to;
  Incarnation incarnation;
  uint64_t token = 0;       // binds the two lanes of one link
  uint64_t last_token = 0;  // of the link that stood before, as far as the sender knows
  uint64_t run = 0;         // of the run's id; see run_hash
  Position position;        // of hello and welcome on the small lane
  std::string text;
};

// The same length as a frame's header, but another magic: both are told apart by their first bytes.
inline constexpr size_t kHandshakeBytes = kWireHeaderBytes;
inline constexpr uint32_t kHandshakeTextMax = kGreetingMax;

// Workers whose run ids differ never link, wherever they find each other's addresses. Zero: of
// none.
[[nodiscard]] uint64_t run_hash(std::string_view run_id);

[[nodiscard]] std::string encode_handshake(const Handshake& handshake);

[[nodiscard]] bool is_handshake(std::span<const std::byte> header);

// Reads a header of kHandshakeBytes; the text is still to come.
struct HandshakeHeader {
  Handshake handshake;
  uint32_t text_bytes = 0;
  uint64_t checksum = 0;
};
[[nodiscard]] Result<HandshakeHeader> parse_handshake_header(std::span<const std::byte> header);

// Checks header and text together.
[[nodiscard]] Result<Handshake> finish_handshake(const HandshakeHeader& header, std::string text);

// An error as a record's text. Reading takes any text.
[[nodiscard]] std::string error_to_text(const Error& error);
[[nodiscard]] Error error_from_text(std::string_view text);

}  // namespace rehearsal::real
