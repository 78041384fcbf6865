#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "core/base/result.h"
#include "real_net/auth/auth.h"
#include "real_net/auth/mac_records.h"

struct ssl_st;
struct bio_st;

namespace rehearsal::real {

// One end of a TLS connection without its socket: bytes of the network go in and come out, and so
// do those of its user. Reading and writing may be done by two threads at the same time; each does
// a record (16 KiB) at a time. Its errors are of kind protocol.
//
// With Protection::mac only the handshake is TLS's own; behind it come MacRecords, under keys that
// both ends take from it (RFC 8446, 7.5). The two ends agree on the protection in the handshake
// (RFC 7301): with different ones it fails.
class SecureChannel {
 public:
  // Takes over a channel of OpenSSL that has no input and output yet.
  SecureChannel(ssl_st* channel, Protection protection);
  ~SecureChannel();
  SecureChannel(const SecureChannel&) = delete;
  SecureChannel& operator=(const SecureChannel&) = delete;

  // Goes on with the handshake with what has been fed; true when the other end has proved itself.
  // The words that it has to hear are appended to `out`, also of an error: then, why.
  [[nodiscard]] Result<bool> shake_hands(std::string& out);

  // Bytes of the network.
  void feed(std::span<const std::byte> bytes);
  // Reads what they mean; 0: the rest of a record must come first.
  [[nodiscard]] Result<size_t> read(std::span<std::byte> room);
  // Whether something was fed and has not been read.
  [[nodiscard]] bool holds_input();

  // Encrypts, and appends what the network shall carry to `out`.
  [[nodiscard]] Status write(std::span<const std::byte> bytes, std::string& out);

  // Whether the other end's certificate has the name of this worker, letter by letter (`*` is a
  // letter), or it needs none: with a secret all members are alike. After the handshake.
  [[nodiscard]] bool proves(const std::string& worker);

 private:
  void take_output(std::string& out);
  [[nodiscard]] Status agree();
  [[nodiscard]] Error failure(const std::string& what);

  std::mutex mutex_;
  ssl_st* const channel_;
  bio_st* const input_;   // the channel's
  bio_st* const output_;  // the same
  uint64_t written_ = 0;  // under the present key
  const Protection protection_;
  std::optional<MacRecords> records_;  // once the handshake is over, with Protection::mac
};

}  // namespace rehearsal::real
