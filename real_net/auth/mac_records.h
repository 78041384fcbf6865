#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/result.h"

struct evp_cipher_ctx_st;

namespace rehearsal::real {

// The key of one direction of a connection.
using MacKey = std::array<unsigned char, 16>;

// Records that everybody on the way may read and nobody may change, leave out, repeat or exchange:
// the length, the bytes, and a GMAC (NIST SP 800-38D) of both under the direction's key, with the
// record's number as its nonce. A key is of one connection, so that no nonce comes twice.
class MacRecords {
 public:
  MacRecords(const MacKey& writes, const MacKey& reads);
  ~MacRecords();
  MacRecords(const MacRecords&) = delete;
  MacRecords& operator=(const MacRecords&) = delete;

  // Appends the bytes as one record to `out`. REQUIRES: at most kRecordBytes.
  static constexpr size_t kRecordBytes = 16 * 1024;
  void write(std::span<const std::byte> bytes, std::string& out);

  // Bytes of the network.
  void feed(std::span<const std::byte> bytes);
  // Takes bytes of a record that is whole and true; 0: the rest of one must come first. The error
  // is of kind protocol.
  [[nodiscard]] Result<size_t> read(std::span<std::byte> room);
  // Whether something was fed and has not been read.
  [[nodiscard]] bool holds_input() const { return begin_ < inbox_.size(); }

 private:
  static constexpr size_t kTagBytes = 16;
  using Tag = std::array<unsigned char, kTagBytes>;

  struct Free {
    void operator()(evp_cipher_ctx_st* context) const;
  };
  // One direction.
  struct Way {
    explicit Way(const MacKey& key);
    [[nodiscard]] Tag next_tag(std::span<const std::byte> record);
    std::unique_ptr<evp_cipher_ctx_st, Free> context;
    uint64_t number = 0;
  };

  Way out_;
  Way in_;
  std::string inbox_;
  size_t begin_ = 0;   // of what has not been read
  size_t proven_ = 0;  // bytes from there on that belong to a record that is true
};

}  // namespace rehearsal::real
