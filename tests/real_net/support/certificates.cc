#include "tests/real_net/support/certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <map>
#include <vector>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr long kDay = 24 * 3600;

using KeyPtr = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using CertificatePtr = std::unique_ptr<X509, decltype(&X509_free)>;
using ListPtr = std::unique_ptr<X509_CRL, decltype(&X509_CRL_free)>;
using FilePtr = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

KeyPtr new_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

FilePtr file_for(const std::string& path) {
  FilePtr file(std::fopen(path.c_str(), "w"), std::fclose);
  REHEARSAL_CHECK(file != nullptr, path);
  return file;
}

void set_name(X509* certificate, const std::string& name) {
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
}

void extend(X509* certificate, int kind, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
  REHEARSAL_CHECK(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1, value);
  X509_EXTENSION_free(extension);
}

CertificatePtr new_certificate(const std::string& name, long number, EVP_PKEY* key) {
  CertificatePtr made(X509_new(), X509_free);
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), number);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), kDay);
  X509_set_pubkey(made.get(), key);
  set_name(made.get(), name);
  return made;
}

void write_certificates(const std::string& path, const std::vector<X509*>& certificates) {
  const FilePtr file = file_for(path);
  for (X509* certificate : certificates) PEM_write_X509(file.get(), certificate);
}

}  // namespace

struct TestAuthority::State {
  KeyPtr key = new_key();
  CertificatePtr certificate{nullptr, X509_free};
  bool is_below = false;    // another authority has made the certificate
  std::string authorities;  // the file of the one that is believed
  long last_number = 1;
  std::map<std::string, long> numbers;  // of certificates, by name
  std::map<std::string, long> revoked;
};

TestAuthority::TestAuthority() : state_(std::make_unique<State>()) {
  state_->certificate = new_certificate("authority", 1, state_->key.get());
  state_->authorities = folder_.file("ca.pem");
  X509* own = state_->certificate.get();
  extend(own, NID_basic_constraints, "critical,CA:TRUE");
  X509_set_issuer_name(own, X509_get_subject_name(own));
  X509_sign(own, state_->key.get(), EVP_sha256());
  write_certificates(state_->authorities, {own});
}

TestAuthority::TestAuthority(TestAuthority& above, const std::string& name)
    : state_(std::make_unique<State>()) {
  State& other = *above.state_;
  other.numbers[name] = ++other.last_number;
  state_->certificate = new_certificate(name, other.last_number, state_->key.get());
  state_->is_below = true;
  state_->authorities = other.authorities;
  X509* own = state_->certificate.get();
  extend(own, NID_basic_constraints, "critical,CA:TRUE");
  X509_set_issuer_name(own, X509_get_subject_name(other.certificate.get()));
  X509_sign(own, other.key.get(), EVP_sha256());
}

TestAuthority::~TestAuthority() = default;

CertificateFiles TestAuthority::issue(const std::string& name) {
  replace(name, name);
  return {.chain = folder_.file(name + ".pem"),
          .key = folder_.file(name + ".key"),
          .authorities = state_->authorities,
          .revoked = {}};
}

void TestAuthority::replace(const std::string& name, const std::string& other) {
  const KeyPtr key = new_key();
  const CertificatePtr made = new_certificate(other, ++state_->last_number, key.get());
  extend(made.get(), NID_subject_alt_name, "DNS:" + other);
  X509_set_issuer_name(made.get(), X509_get_subject_name(state_->certificate.get()));
  X509_sign(made.get(), state_->key.get(), EVP_sha256());
  PEM_write_PrivateKey(file_for(folder_.file(name + ".key")).get(), key.get(), nullptr, nullptr, 0,
                       nullptr, nullptr);
  std::vector<X509*> shown = {made.get()};
  if (state_->is_below) shown.push_back(state_->certificate.get());
  write_certificates(folder_.file(name + ".pem"), shown);
  state_->numbers[name] = state_->last_number;
}

std::string TestAuthority::empty_list() { return write_list("none.crl"); }

std::string TestAuthority::revoke(const std::string& name) {
  state_->revoked[name] = state_->numbers.at(name);
  return write_list("revoked.crl");
}

std::string TestAuthority::write_list(const std::string& file) {
  const ListPtr list(X509_CRL_new(), X509_CRL_free);
  X509_CRL_set_version(list.get(), X509_CRL_VERSION_2);
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(state_->certificate.get()));
  const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> now(X509_gmtime_adj(nullptr, -kDay),
                                                                  ASN1_TIME_free);
  const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> later(X509_gmtime_adj(nullptr, kDay),
                                                                    ASN1_TIME_free);
  X509_CRL_set1_lastUpdate(list.get(), now.get());
  X509_CRL_set1_nextUpdate(list.get(), later.get());
  for (const auto& [name, number] : state_->revoked) {
    X509_REVOKED* entry = X509_REVOKED_new();
    const std::unique_ptr<ASN1_INTEGER, decltype(&ASN1_INTEGER_free)> serial(ASN1_INTEGER_new(),
                                                                             ASN1_INTEGER_free);
    ASN1_INTEGER_set(serial.get(), number);
    X509_REVOKED_set_serialNumber(entry, serial.get());
    X509_REVOKED_set_revocationDate(entry, now.get());
    X509_CRL_add0_revoked(list.get(), entry);
  }
  X509_CRL_sign(list.get(), state_->key.get(), EVP_sha256());
  PEM_write_X509_CRL(file_for(folder_.file(file)).get(), list.get());
  return folder_.file(file);
}

}  // namespace rehearsal::real
