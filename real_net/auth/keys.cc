#include "real_net/auth/keys.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/base/check.h"

namespace rehearsal::real {

Key hmac(std::string_view key, std::string_view text) {
  Key made{};
  unsigned int bytes = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), made.data(), &bytes);
  REHEARSAL_CHECK(done != nullptr && bytes == made.size(), bytes);
  return made;
}

Key derive_key(std::string_view secret, std::string_view purpose) {
  return hmac(secret, "rehearsal 1 " + std::string(purpose));
}

}  // namespace rehearsal::real
