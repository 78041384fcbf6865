#include "real_net/auth/secure_channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

// The key of AES-GCM is renewed long before the bound of RFC 8446, 5.5: 2^24.5 records.
constexpr uint64_t kBytesPerKey = uint64_t{64} << 30;

// So much at a time, so that the other half of the connection never waits for long.
constexpr size_t kRecordBytes = MacRecords::kRecordBytes;

bio_st* input_of(ssl_st* channel) {
  BIO* input = BIO_new(BIO_s_mem());
  BIO* output = BIO_new(BIO_s_mem());
  REHEARSAL_CHECK(input != nullptr && output != nullptr);
  BIO_set_mem_eof_return(input, -1);
  BIO_set_mem_eof_return(output, -1);
  SSL_set_bio(channel, input, output);
  return input;
}

}  // namespace

SecureChannel::SecureChannel(ssl_st* channel, Protection protection)
    : channel_(channel),
      input_(input_of(channel)),
      output_(SSL_get_wbio(channel)),
      protection_(protection) {}

SecureChannel::~SecureChannel() { SSL_free(channel_); }

Error SecureChannel::failure(const std::string& what) {
  Error error;
  error.kind = ErrorKind::protocol;
  const long verified = SSL_get_verify_result(channel_);
  const unsigned long code = ERR_peek_last_error();
  const char* why = ERR_reason_error_string(code);
  const int reason = ERR_GET_REASON(code);
  error.text = what;
  if (reason == SSL_R_NO_APPLICATION_PROTOCOL ||
      reason == SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL)
    error.text += ": its --auth names another protection";
  else if (verified != X509_V_OK)
    error.text += std::string(": ") + X509_verify_cert_error_string(verified);
  else if (why != nullptr)
    error.text += std::string(": ") + why;
  ERR_clear_error();
  return error;
}

void SecureChannel::take_output(std::string& out) {
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(output_, &bytes);
  if (count > 0) out.append(bytes, static_cast<size_t>(count));
  (void)BIO_reset(output_);
}

Result<bool> SecureChannel::shake_hands(std::string& out) {
  const std::lock_guard lock(mutex_);
  ERR_clear_error();
  const int done = SSL_do_handshake(channel_);
  const int state = SSL_get_error(channel_, done);
  take_output(out);
  if (done == 1) {
    if (Status agreed = agree(); !agreed.ok()) return agreed.error();
    return true;
  }
  if (state == SSL_ERROR_WANT_READ) return false;
  return failure("the other end has not proved that it belongs to this group");
}

// The protection that both ends take, and its keys.
Status SecureChannel::agree() {
  const unsigned char* chosen = nullptr;
  unsigned int bytes = 0;
  SSL_get0_alpn_selected(channel_, &chosen, &bytes);
  if (std::string_view(reinterpret_cast<const char*>(chosen), bytes) != name_of(protection_))
    return failure("the other end does not say how it protects what it sends");
  if (protection_ != Protection::mac || records_) return Unit{};
  constexpr std::string_view kLabel = "EXPORTER-rehearsal-mac";
  std::array<MacKey, 2> keys;  // of the end that has connected, of the other one
  if (SSL_export_keying_material(channel_, keys[0].data(), sizeof keys, kLabel.data(),
                                 kLabel.size(), nullptr, 0, 0) != 1)
    return failure("there are no keys");
  const bool accepts = SSL_is_server(channel_) == 1;
  records_.emplace(keys[accepts ? 1 : 0], keys[accepts ? 0 : 1]);
  char* early = nullptr;
  const long count = BIO_get_mem_data(input_, &early);
  if (count > 0) records_->feed(std::as_bytes(std::span(early, static_cast<size_t>(count))));
  (void)BIO_reset(input_);
  return Unit{};
}

void SecureChannel::feed(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  if (records_) return records_->feed(bytes);
  const int taken = BIO_write(input_, bytes.data(), static_cast<int>(bytes.size()));
  REHEARSAL_CHECK(taken == static_cast<int>(bytes.size()), taken);
}

Result<size_t> SecureChannel::read(std::span<std::byte> room) {
  const std::lock_guard lock(mutex_);
  if (records_) return records_->read(room);
  ERR_clear_error();
  size_t count = 0;
  const int done = SSL_read_ex(channel_, room.data(), std::min(room.size(), kRecordBytes), &count);
  if (done == 1) return count;
  const int state = SSL_get_error(channel_, done);
  if (state == SSL_ERROR_WANT_READ) return size_t{0};
  return failure("what came is not what the other end has sent");
}

bool SecureChannel::holds_input() {
  const std::lock_guard lock(mutex_);
  if (records_) return records_->holds_input();
  return SSL_has_pending(channel_) == 1 || BIO_ctrl_pending(input_) > 0;
}

Status SecureChannel::write(std::span<const std::byte> bytes, std::string& out) {
  while (!bytes.empty()) {
    const std::lock_guard lock(mutex_);
    ERR_clear_error();
    const std::span<const std::byte> record = bytes.first(std::min(bytes.size(), kRecordBytes));
    if (records_) {
      records_->write(record, out);
      bytes = bytes.subspan(record.size());
      continue;
    }
    written_ += record.size();
    if (written_ >= kBytesPerKey) {
      written_ = 0;
      if (SSL_key_update(channel_, SSL_KEY_UPDATE_NOT_REQUESTED) != 1)
        return failure("the key cannot be renewed");
    }
    size_t count = 0;
    const int done = SSL_write_ex(channel_, record.data(), record.size(), &count);
    take_output(out);
    if (done != 1) return failure("nothing can be sent any more");
    bytes = bytes.subspan(count);
  }
  return Unit{};
}

bool SecureChannel::proves(const std::string& worker) {
  const std::lock_guard lock(mutex_);
  X509* certificate = SSL_get0_peer_certificate(channel_);
  if (certificate == nullptr) return SSL_session_reused(channel_) == 1;
  char* matched = nullptr;
  const int matches = X509_check_host(certificate, worker.data(), worker.size(),
                                      X509_CHECK_FLAG_NO_WILDCARDS, &matched);
  // Names of hosts match whatever their case, and a name that begins with a dot all below it.
  const bool equal = matches == 1 && matched != nullptr && worker == matched;
  OPENSSL_free(matched);
  return equal;
}

}  // namespace rehearsal::real
