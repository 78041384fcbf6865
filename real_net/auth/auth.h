#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rehearsal::real {

// The files of the form `certificates`, each PEM.
struct CertificateFiles {
  std::string chain;        // this worker's certificate, and those between it and an authority
  std::string key;          // its private key, without a pass phrase
  std::string authorities;  // whose certificates are taken
  std::string revoked;      // revocation lists of all authorities, of those between, too; empty:
                            // nothing is revoked
};

// How far a link of proven workers is closed to others.
enum class Protection : uint8_t {
  tls,  // nobody can read or change what it carries
  mac,  // nobody can change it: for networks whose listeners are trusted, and links that are faster
};
// "tls", "mac".
[[nodiscard]] std::string_view name_of(Protection protection);

// How the workers of a group prove to each other that they belong to it.
struct Auth {
  enum class Kind : uint8_t {
    unsaid,       // nothing was chosen: good for addresses that only this machine reaches
    none,         // chosen by name: whoever reaches a port is believed
    secret,       // all have one secret
    certificates  // each has a certificate with its worker's name
  };
  Kind kind = Kind::unsaid;
  std::string secret;
  CertificateFiles files;
  Protection protection = Protection::tls;  // the same at all workers

  [[nodiscard]] bool proves() const { return kind == Kind::secret || kind == Kind::certificates; }
};

// As people write it: "", "none", "secret", "certificates".
[[nodiscard]] std::string_view name_of(Auth::Kind kind);

// Reads the text of `--auth`, and the secret that it names:
//   none
//   secret:file=PATH     secret:env=VARIABLE     secret:fd=DESCRIPTOR
//   certificates:cert=PATH,key=PATH,ca=PATH[,crl=PATH]
// The last two may end with `,protection=mac` (or `tls`, which they have without it). An empty
// text: unsaid. The secret is at least 16 bytes, and not more than 4096, without white space at its
// end; its file is one that others of the machine cannot read. A descriptor is read from its
// beginning, stays open for later lives, and is not inherited any further. The error
// (bad_arguments) is one line and has nothing of a secret in it, also where a secret stands in the
// place of a form, a variable or a descriptor: it quotes paths only.
[[nodiscard]] Result<Auth> parse_auth(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

}  // namespace rehearsal::real
