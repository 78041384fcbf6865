#include "real_net/auth/credentials.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/base/check.h"
#include "core/base/regular_file.h"
#include "real_net/auth/keys.h"

namespace rehearsal::real {
namespace {

// Of the certificates that a peer shows, before it has proved anything.
constexpr long kChainBytesMax = 24 * 1024;
constexpr std::string_view kIdentity = "rehearsal";
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr unsigned char kSuiteOfKey[] = {0x13, 0x01};

// Files that could not be read are read again no sooner.
constexpr auto kTriesApart = std::chrono::seconds(2);

using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

Error openssl_error(const std::string& text) {
  // The first of them: what follows says only that the call has failed.
  const unsigned long code = ERR_peek_error();
  const char* why =
      ERR_SYSTEM_ERROR(code) ? std::strerror(ERR_GET_REASON(code)) : ERR_reason_error_string(code);
  Error error = wrong_arguments("--auth: " + text);
  if (why != nullptr) error.text += std::string(": ") + why;
  ERR_clear_error();
  return error;
}

const unsigned char* identity_bytes() {
  return reinterpret_cast<const unsigned char*>(kIdentity.data());
}

// ---- protection ----

// By its name, as the handshake carries it: the length goes before it.
int take_protection(SSL*, const unsigned char** chosen, unsigned char* bytes,
                    const unsigned char* offered, unsigned int offered_bytes, void* ours) {
  const auto* name = static_cast<const std::string_view*>(ours);
  for (unsigned int at = 0; at < offered_bytes; at += 1 + offered[at]) {
    if (offered[at] > offered_bytes - at - 1) break;
    const auto* text = reinterpret_cast<const char*>(offered + at + 1);
    if (std::string_view(text, offered[at]) != *name) continue;
    *chosen = offered + at + 1;
    *bytes = offered[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

void use_protection(SSL_CTX* context, Protection protection) {
  static const std::string_view kNames[] = {name_of(Protection::tls), name_of(Protection::mac)};
  const std::string_view& name = kNames[static_cast<size_t>(protection)];
  const std::string offer = static_cast<char>(name.size()) + std::string(name);
  const auto* bytes = reinterpret_cast<const unsigned char*>(offer.data());
  REHEARSAL_CHECK(SSL_CTX_set_alpn_protos(context, bytes, offer.size()) == 0);
  SSL_CTX_set_alpn_select_cb(context, take_protection, const_cast<std::string_view*>(&name));
}

// ---- with a secret ----

// A session that stands for the key; null without memory.
SSL_SESSION* session_of_key(SSL* channel) {
  const auto* key = static_cast<const Key*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(channel)));
  SSL_SESSION* session = SSL_SESSION_new();
  const SSL_CIPHER* suite = SSL_CIPHER_find(channel, kSuiteOfKey);
  const bool made = session != nullptr && suite != nullptr &&
                    SSL_SESSION_set1_master_key(session, key->data(), key->size()) == 1 &&
                    SSL_SESSION_set_cipher(session, suite) == 1 &&
                    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
                    SSL_SESSION_set1_id_context(session, identity_bytes(), kIdentity.size()) == 1;
  if (made) return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* channel, const EVP_MD* wanted, const unsigned char** identity, size_t* bytes,
              SSL_SESSION** session) {
  *session = nullptr;
  if (wanted != nullptr && !EVP_MD_is_a(wanted, "SHA256")) return 1;
  *session = session_of_key(channel);
  *identity = identity_bytes();
  *bytes = kIdentity.size();
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* channel, const unsigned char* identity, size_t bytes, SSL_SESSION** session) {
  *session = nullptr;
  const std::string_view named(reinterpret_cast<const char*>(identity), bytes);
  if (named != kIdentity) return 1;
  *session = session_of_key(channel);
  return *session != nullptr ? 1 : 0;
}

// ---- with certificates ----

// OpenSSL would wait for whoever writes into a pipe.
Result<OpenFile> open_credential(const std::string& path) {
  Result<OpenFile> file = open_regular(path);
  if (file.ok()) return file;
  return wrong_arguments("--auth: the file '" + path + "' cannot be read: " + file.error().text);
}

int no_pass_phrase(char*, int, int, void*) { return -1; }

// Whether each line that begins as those around a list do is one of these, whole, and as many begin
// as there are. A list that is cut inside its first line would else be taken for a person's words.
bool are_whole(std::FILE* file, size_t lists) {
  std::rewind(file);
  std::array<char, 256> part{};
  bool is_beginning = true;  // of a line
  size_t begun = 0;
  while (std::fgets(part.data(), static_cast<int>(part.size()), file) != nullptr) {
    const std::string_view text(part.data());
    const bool was_beginning = std::exchange(is_beginning, text.back() == '\n');
    if (!was_beginning || text.front() != '-') continue;
    const std::string_view line = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    const bool begins = line.starts_with("-----BEGIN ");
    if (!begins && !line.starts_with("-----END ")) return false;
    if (!line.ends_with("-----") || line.size() < 16) return false;
    if (line == "-----BEGIN X509 CRL-----") ++begun;
  }
  return std::ferror(file) == 0 && begun == lists;
}

MaybeError take_revocations(SSL_CTX* context, const std::string& path) {
  const Result<OpenFile> file = open_credential(path);
  if (!file.ok()) return file.error();
  ERR_clear_error();
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  size_t count = 0;
  while (X509_CRL* list = PEM_read_X509_CRL(file.value().get(), nullptr, no_pass_phrase, nullptr)) {
    const bool taken = X509_STORE_add_crl(store, list) == 1;
    X509_CRL_free(list);
    if (!taken) return openssl_error("the revocation list '" + path + "' cannot be used");
    ++count;
  }
  // The loop ends well only where no other list begins: one that is damaged is not passed over.
  const unsigned long end = ERR_peek_last_error();
  if (ERR_GET_LIB(end) != ERR_LIB_PEM || ERR_GET_REASON(end) != PEM_R_NO_START_LINE ||
      !are_whole(file.value().get(), count))
    return openssl_error("a revocation list in '" + path + "' cannot be read");
  if (count == 0) return openssl_error("'" + path + "' has no revocation list");
  ERR_clear_error();
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return std::nullopt;
}

MaybeError use_files(SSL_CTX* context, const CertificateFiles& files) {
  for (const std::string* const path : {&files.chain, &files.key, &files.authorities})
    if (const Result<OpenFile> file = open_credential(*path); !file.ok()) return file.error();
  SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
  if (SSL_CTX_use_certificate_chain_file(context, files.chain.c_str()) != 1)
    return openssl_error("the certificate '" + files.chain + "' cannot be read");
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return openssl_error("the key '" + files.key +
                         "' cannot be read, or is of another certificate");
  if (SSL_CTX_load_verify_locations(context, files.authorities.c_str(), nullptr) != 1)
    return openssl_error("the authorities in '" + files.authorities + "' cannot be read");
  return files.revoked.empty() ? std::nullopt : take_revocations(context, files.revoked);
}

Result<ContextPtr> new_context(const Auth& auth, bool connects, Key* key) {
  ERR_clear_error();
  ContextPtr made(SSL_CTX_new(connects ? TLS_client_method() : TLS_server_method()), SSL_CTX_free);
  SSL_CTX* context = made.get();
  REHEARSAL_CHECK(context != nullptr);
  const bool set = SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                   SSL_CTX_set_ciphersuites(context, kSuites) == 1 &&
                   SSL_CTX_set_num_tickets(context, 0) == 1 &&
                   SSL_CTX_set1_groups_list(context, "X25519:P-256") == 1 &&
                   SSL_CTX_set_session_id_context(context, identity_bytes(), kIdentity.size()) == 1;
  REHEARSAL_CHECK(set);
  SSL_CTX_set_max_cert_list(context, kChainBytesMax);
  use_protection(context, auth.protection);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A server without the key could show a certificate: with a secret no authority is believed.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (auth.kind == Auth::Kind::certificates) {
    if (const MaybeError failed = use_files(context, auth.files)) return *failed;
    return made;
  }
  SSL_CTX_set_app_data(context, key);
  connects ? SSL_CTX_set_psk_use_session_callback(context, offer_key)
           : SSL_CTX_set_psk_find_session_callback(context, find_key);
  return made;
}

}  // namespace

struct Credentials::Contexts {
  Key key;  // of a secret; the contexts point to it
  ContextPtr accepting{nullptr, SSL_CTX_free};
  ContextPtr connecting{nullptr, SSL_CTX_free};
};

Credentials::~Credentials() = default;

Result<std::shared_ptr<Credentials>> Credentials::make(Auth auth, Tell tell) {
  REHEARSAL_CHECK(auth.proves());
  std::shared_ptr<Credentials> made(new Credentials(std::move(auth), std::move(tell)));
  made->times_ = made->file_times();
  Result<std::shared_ptr<Contexts>> contexts = made->read();
  if (!contexts.ok()) return contexts.error();
  made->contexts_ = std::move(contexts).value();
  return made;
}

Result<std::shared_ptr<Credentials::Contexts>> Credentials::read() const {
  auto made = std::make_shared<Contexts>();
  made->key = derive_key(auth_.secret, "links");
  for (const bool connects : {false, true}) {
    Result<ContextPtr> context = new_context(auth_, connects, &made->key);
    if (!context.ok()) return context.error();
    (connects ? made->connecting : made->accepting) = std::move(context).value();
  }
  return made;
}

Credentials::Times Credentials::file_times() const {
  const CertificateFiles& files = auth_.files;
  const std::string* const paths[] = {&files.chain, &files.key, &files.authorities, &files.revoked};
  Times times{};
  for (size_t i = 0; i < times.size(); ++i) {
    std::error_code ignored;
    if (!paths[i]->empty()) times[i] = std::filesystem::last_write_time(*paths[i], ignored);
  }
  return times;
}

// Files that cannot be read are read again later, also if they have the same times: one may be
// half written, and be whole within the same tick of its clock; or there was no descriptor.
void Credentials::renew() {
  const Times now = file_times();
  if (now == times_) return;
  const bool told = now == failed_;
  if (told && Clock::now() < next_try_) return;
  Result<std::shared_ptr<Contexts>> renewed = read();
  if (renewed.ok()) {
    contexts_ = std::move(renewed).value();
    times_ = now;
    return;
  }
  failed_ = now;
  next_try_ = Clock::now() + kTriesApart;
  if (!told && tell_) tell_(renewed.error());
}

Result<std::unique_ptr<SecureChannel>> Credentials::open(bool connects) {
  const std::lock_guard lock(mutex_);
  if (auth_.kind == Auth::Kind::certificates) renew();
  SSL* channel = SSL_new(connects ? contexts_->connecting.get() : contexts_->accepting.get());
  if (channel == nullptr)
    return Error{.kind = ErrorKind::overloaded, .text = "no memory for a connection's keys"};
  connects ? SSL_set_connect_state(channel) : SSL_set_accept_state(channel);
  return std::make_unique<SecureChannel>(channel, auth_.protection);
}

}  // namespace rehearsal::real
