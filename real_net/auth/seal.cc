#include "real_net/auth/seal.h"

#include <openssl/crypto.h>

#include <algorithm>

namespace rehearsal::real {
namespace {

// The last byte of a text tells whether a MAC precedes it.
constexpr char kSealed = 'S';
constexpr char kOpen = 'O';

}  // namespace

Seal::Seal(const Auth& auth) {
  if (auth.kind == Auth::Kind::secret) key_ = derive_key(auth.secret, "seal");
}

Key Seal::mac(std::string_view place, std::string_view text) const {
  std::string both = std::to_string(place.size()) + " ";
  both.append(place).append(text);
  return hmac(view(*key_), both);
}

std::string Seal::close(std::string_view place, std::string_view text) const {
  std::string closed(text);
  if (key_) closed.append(view(mac(place, text)));
  closed.push_back(key_ ? kSealed : kOpen);
  return closed;
}

Result<std::string> Seal::open(std::string_view place, std::string_view sealed) const {
  const auto refused = [](std::string why) {
    return Error{.kind = ErrorKind::bad_arguments, .text = std::move(why)};
  };
  const char mark = sealed.empty() ? '\0' : sealed.back();
  if (mark != kSealed && mark != kOpen)
    return refused("what is written there is not of a program like this one");
  sealed.remove_suffix(1);
  if (!key_ && mark == kOpen) return std::string(sealed);
  if (!key_)
    return refused(
        "the workers there have a secret, and this one has none: give it theirs (--auth)");
  if (mark == kOpen)
    return refused(
        "this worker has a secret, and somebody there has none: give all the same (--auth)");
  const size_t bytes = sealed.size() - std::min(sealed.size(), key_->size());
  const std::string_view text = sealed.substr(0, bytes);
  const Key expected = mac(place, text);
  if (sealed.size() - bytes != expected.size() ||
      CRYPTO_memcmp(expected.data(), sealed.data() + bytes, expected.size()) != 0)
    return refused(
        "somebody there has another secret than this worker: give all the same (--auth)");
  return std::string(text);
}

}  // namespace rehearsal::real
