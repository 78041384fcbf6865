#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "real_net/auth/auth.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {

// An authority that makes certificates, and a folder with the files of those that it has made.
class TestAuthority {
 public:
  TestAuthority();
  // One whose certificate `above` has made, which may revoke it by this name. The files that it
  // issues show its own certificate, too, and believe `above`.
  TestAuthority(TestAuthority& above, const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  // The files of a new certificate for this name.
  [[nodiscard]] CertificateFiles issue(const std::string& name);
  // The same, read anew: the files of `name` get another certificate, for `other`.
  void replace(const std::string& name, const std::string& other);
  // Revokes the certificate of a name: returns the file of the revocation list.
  [[nodiscard]] std::string revoke(const std::string& name);
  // A list in which nothing is revoked.
  [[nodiscard]] std::string empty_list();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  struct State;
  [[nodiscard]] std::string write_list(const std::string& file);
  const TemporaryFolder folder_;
  std::unique_ptr<State> state_;
};

}  // namespace rehearsal::real
