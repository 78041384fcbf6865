#include "real_net/auth/mac_records.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

using Length = uint32_t;

Error untrue() {
  Error error;
  error.kind = ErrorKind::protocol;
  error.text = "what came is not what the other end has sent: a record has a false MAC";
  return error;
}

}  // namespace

void MacRecords::Free::operator()(evp_cipher_ctx_st* context) const {
  EVP_CIPHER_CTX_free(context);
}

MacRecords::Way::Way(const MacKey& key) : context(EVP_CIPHER_CTX_new()) {
  const bool set = context != nullptr && EVP_EncryptInit_ex(context.get(), EVP_aes_128_gcm(),
                                                            nullptr, key.data(), nullptr) == 1;
  REHEARSAL_CHECK(set);
}

MacRecords::Tag MacRecords::Way::next_tag(std::span<const std::byte> record) {
  std::array<unsigned char, 12> nonce{};
  std::memcpy(nonce.data(), &number, sizeof number);
  ++number;
  Tag tag{};
  int ignored = 0;
  const bool done =
      EVP_EncryptInit_ex(context.get(), nullptr, nullptr, nullptr, nonce.data()) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &ignored,
                        reinterpret_cast<const unsigned char*>(record.data()),
                        static_cast<int>(record.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), tag.data(), &ignored) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1;
  REHEARSAL_CHECK(done);
  return tag;
}

MacRecords::MacRecords(const MacKey& writes, const MacKey& reads) : out_(writes), in_(reads) {}

MacRecords::~MacRecords() = default;

void MacRecords::write(std::span<const std::byte> bytes, std::string& out) {
  REHEARSAL_CHECK(bytes.size() <= kRecordBytes, bytes.size());
  const size_t start = out.size();
  const auto length = static_cast<Length>(bytes.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof length);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Tag tag = out_.next_tag(std::as_bytes(std::span(out).subspan(start)));
  out.append(reinterpret_cast<const char*>(tag.data()), tag.size());
}

void MacRecords::feed(std::span<const std::byte> bytes) {
  // The bytes that were read go when they are more than those that stay: none is moved often.
  if (begin_ > inbox_.size() / 2) {
    inbox_.erase(0, begin_);
    begin_ = 0;
  }
  inbox_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Result<size_t> MacRecords::read(std::span<std::byte> room) {
  if (proven_ == 0) {
    const std::span<const std::byte> left = std::as_bytes(std::span(inbox_).subspan(begin_));
    Length length = 0;
    if (left.size() < sizeof length) return size_t{0};
    std::memcpy(&length, left.data(), sizeof length);
    if (length == 0 || length > kRecordBytes) return untrue();
    const size_t record = sizeof length + length;
    if (left.size() < record + kTagBytes) return size_t{0};
    const Tag tag = in_.next_tag(left.first(record));
    if (CRYPTO_memcmp(tag.data(), left.data() + record, kTagBytes) != 0) return untrue();
    begin_ += sizeof length;
    proven_ = length;
  }
  const size_t count = std::min(room.size(), proven_);
  std::memcpy(room.data(), inbox_.data() + begin_, count);
  begin_ += count;
  proven_ -= count;
  if (proven_ == 0) begin_ += kTagBytes;
  return count;
}

}  // namespace rehearsal::real
