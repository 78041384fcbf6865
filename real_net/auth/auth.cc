#include "real_net/auth/auth.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>

#include "core/base/regular_file.h"

namespace rehearsal::real {
namespace {

constexpr size_t kSecretBytesMin = 16;
constexpr size_t kSecretBytesMax = 4096;
constexpr const char* kForms =
    "type none, secret:file=PATH, secret:env=VARIABLE, secret:fd=DESCRIPTOR or "
    "certificates:cert=PATH,key=PATH,ca=PATH (the last two with ,protection=mac behind them are "
    "not encrypted)";

// Quotes nothing but paths: a secret may have been typed in the place of anything else.
Error wrong_form(const std::string& text) { return wrong_arguments("--auth: " + text); }

std::string reason(int error) { return std::strerror(error); }

// From the beginning, wherever others who share the descriptor have read to.
Result<std::string> read_from_start(int fd) {
  std::array<char, kSecretBytesMax + 2> bytes;
  size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t count =
        pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return wrong_form("the secret cannot be read: " + reason(errno));
    if (count == 0) break;
    have += static_cast<size_t>(count);
  }
  return std::string(bytes.data(), have);
}

Result<std::string> read_file(const std::string& path) {
  const Result<OpenFile> file = open_regular(path);
  if (!file.ok()) return wrong_form("the secret's file '" + path + "': " + file.error().text);
  const int descriptor = fileno(file.value().get());
  struct stat state {};
  if (fstat(descriptor, &state) != 0)
    return wrong_form("the secret's file '" + path + "': " + reason(errno));
  if ((state.st_mode & (S_IROTH | S_IWOTH)) != 0)
    return wrong_form("everybody on this machine may read or write the secret's file '" + path +
                      "'; type chmod o-rw '" + path + "'");
  return read_from_start(descriptor);
}

Result<std::string> read_descriptor(const std::string& text) {
  int fd = -1;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (failed != std::errc() || end != text.data() + text.size() || fd < 0)
    return wrong_form("what stands behind secret:fd= is no descriptor");
  Result<std::string> bytes = read_from_start(fd);
  if (bytes.ok()) fcntl(fd, F_SETFD, FD_CLOEXEC);
  return bytes;
}

Result<Auth> with_secret(
    const std::string& source,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  const size_t equals = source.find('=');
  const std::string kind = source.substr(0, equals);
  const std::string where = equals == std::string::npos ? "" : source.substr(equals + 1);
  Result<std::string> secret = std::string();
  if (kind == "file" && !where.empty()) {
    secret = read_file(where);
  } else if (kind == "fd") {
    secret = read_descriptor(where);
  } else if (kind == "env" && !where.empty()) {
    const std::optional<std::string> value = environment(where);
    if (!value) return wrong_form("the variable that secret:env= names is not set");
    secret = *value;
  } else {
    return wrong_form(std::string("it is not said where the secret is; ") + kForms);
  }
  if (!secret.ok()) return secret.error();
  std::string& bytes = secret.value();
  bytes.erase(bytes.find_last_not_of(" \t\r\n") + 1);
  if (bytes.size() < kSecretBytesMin || bytes.size() > kSecretBytesMax)
    return wrong_form("the secret has " + std::to_string(bytes.size()) + " bytes; it must have " +
                      std::to_string(kSecretBytesMin) + " to " + std::to_string(kSecretBytesMax) +
                      ", as `openssl rand -hex 32` makes them");
  return Auth{.kind = Auth::Kind::secret, .secret = std::move(bytes)};
}

Result<Auth> with_certificates(std::string_view list) {
  CertificateFiles files;
  const std::map<std::string_view, std::string*> places = {{"cert", &files.chain},
                                                           {"key", &files.key},
                                                           {"ca", &files.authorities},
                                                           {"crl", &files.revoked}};
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const size_t equals = item.find('=');
    const auto place = places.find(item.substr(0, equals));
    if (equals == std::string_view::npos || place == places.end())
      return wrong_form(
          "behind certificates: stands something else than cert=PATH, key=PATH, ca=PATH, crl=PATH, "
          "and at the end protection=tls or mac");
    *place->second = item.substr(equals + 1);
  }
  if (files.chain.empty() || files.key.empty() || files.authorities.empty())
    return wrong_form("certificates need cert=PATH, key=PATH and ca=PATH");
  return Auth{.kind = Auth::Kind::certificates, .files = std::move(files)};
}

// Takes it off the end of the words.
Protection take_protection(std::string_view& words) {
  for (const Protection protection : {Protection::tls, Protection::mac}) {
    const std::string end = ",protection=" + std::string(name_of(protection));
    if (!words.ends_with(end)) continue;
    words.remove_suffix(end.size());
    return protection;
  }
  return Protection::tls;
}

}  // namespace

std::string_view name_of(Protection protection) {
  return protection == Protection::mac ? "mac" : "tls";
}

std::string_view name_of(Auth::Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"", "none", "secret", "certificates"};
  return kNames[static_cast<size_t>(kind)];
}

Result<Auth> parse_auth(
    std::string_view text,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  if (text.empty()) return Auth{};
  if (text == "none") return Auth{.kind = Auth::Kind::none, .secret = {}, .files = {}};
  const std::string_view form = text.substr(0, text.find(':'));
  std::string_view rest = text.substr(std::min(text.size(), form.size() + 1));
  const Protection protection = take_protection(rest);
  Result<Auth> auth = wrong_form(std::string("no way to prove who one is stands there; ") + kForms);
  if (form == "secret") auth = with_secret(std::string(rest), environment);
  if (form == "certificates") auth = with_certificates(rest);
  if (auth.ok()) auth.value().protection = protection;
  return auth;
}

}  // namespace rehearsal::real
