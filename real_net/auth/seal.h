#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "real_net/auth/auth.h"
#include "real_net/auth/keys.h"

namespace rehearsal::real {

// Marks texts that a group leaves where strangers may write (the store in which it meets), so that
// its members know their own: a MAC under a key that is derived from the secret, over the place and
// the text. It hides nothing. Without a secret there is no MAC, and none is taken.
class Seal {
 public:
  Seal() = default;
  explicit Seal(const Auth& auth);

  [[nodiscard]] std::string close(std::string_view place, std::string_view text) const;
  // The text, if somebody who has the secret has put it at this place. The error (bad_arguments)
  // says which of the two has none, or that the secrets differ.
  [[nodiscard]] Result<std::string> open(std::string_view place, std::string_view sealed) const;

 private:
  [[nodiscard]] Key mac(std::string_view place, std::string_view text) const;
  std::optional<Key> key_;
};

}  // namespace rehearsal::real
