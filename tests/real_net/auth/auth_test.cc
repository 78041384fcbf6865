#include "real_net/auth/auth.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "real_net/auth/credentials.h"
#include "real_net/auth/seal.h"
#include "tests/real_net/support/certificates.h"
#include "tests/temporary_folder.h"

namespace rehearsal::real {
namespace {

const std::string kSecret = "0123456789abcdef0123456789abcdef";

Result<Auth> parse(const std::string& text, std::map<std::string, std::string> variables = {}) {
  return parse_auth(text, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(Auth, IsUnsaidOrNoneByName) {
  EXPECT_EQ(parse("").or_throw().kind, Auth::Kind::unsaid);
  EXPECT_EQ(parse("none").or_throw().kind, Auth::Kind::none);
}

TEST(Auth, TakesASecretFromAVariableAFileAndADescriptor) {
  EXPECT_EQ(parse("secret:env=HIDDEN", {{"HIDDEN", kSecret + "\n"}}).or_throw().secret, kSecret);

  EXPECT_EQ(parse("secret:env=HIDDEN", {{"HIDDEN", kSecret}}).or_throw().protection,
            Protection::tls);
  const Auth mac = parse("secret:env=HIDDEN,protection=mac", {{"HIDDEN", kSecret}}).or_throw();
  EXPECT_EQ(mac.secret, kSecret);
  EXPECT_EQ(mac.protection, Protection::mac);
  EXPECT_EQ(parse("certificates:cert=a,key=b,ca=c,protection=mac").or_throw().protection,
            Protection::mac);

  const TemporaryFolder folder;
  const std::string path = folder.file("secret");
  std::ofstream(path) << kSecret << "\n";
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  EXPECT_EQ(parse("secret:file=" + path).or_throw().secret, kSecret);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  const Result<Auth> open_to_all = parse("secret:file=" + path);
  ASSERT_FALSE(open_to_all.ok());
  EXPECT_NE(open_to_all.error().text.find("chmod o-rw"), std::string::npos);

  // Others have read from the same descriptor; and later lives of this worker will.
  const int fd = memfd_create("secret", 0);
  ASSERT_EQ(write(fd, kSecret.data(), kSecret.size()), static_cast<ssize_t>(kSecret.size()));
  for (int life = 0; life < 2; ++life)
    EXPECT_EQ(parse("secret:fd=" + std::to_string(fd)).or_throw().secret, kSecret);
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
  close(fd);
}

TEST(Auth, RefusesEverythingElseInOneLineWithoutTheSecret) {
  const std::map<std::string, std::string> variables = {{"SHORT", "short-secret"},
                                                        {"LONG", std::string(5000, 'l')}};
  for (const std::string text : {"nobody",
                                 "secret",
                                 "secret:",
                                 "secret:env=",
                                 "secret:env=MISSING",
                                 "secret:env=SHORT",
                                 "secret:env=LONG",
                                 "secret:file=/nowhere/at/all",
                                 "secret:file=/",
                                 "secret:fd=",
                                 "secret:fd=x",
                                 "secret:fd=-1",
                                 "secret:fd=987654",
                                 "certificates",
                                 "certificates:",
                                 "certificates:cert=a",
                                 "certificates:cert=a,key=b",
                                 "certificates:cert=a,key=b,ca=c,more=d",
                                 "certificates:cert=a,key=b,ca=c,protection=no",
                                 "none,protection=mac",
                                 "none "}) {
    const Result<Auth> parsed = parse(text, variables);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.error().kind, ErrorKind::bad_arguments);
    EXPECT_EQ(parsed.error().text.find('\n'), std::string::npos) << parsed.error().text;
    EXPECT_EQ(parsed.error().text.find("short-secret"), std::string::npos);
  }
}

TEST(Auth, QuotesNothingThatMayBeASecretInAWrongPlace) {
  // Goal: a secret that was typed in the wrong place comes to no terminal, log or store. Method: in
  // the place of the form, a variable, a descriptor, an item of a list.
  for (const std::string before :
       {"",
        "secret=", "secret:", "secret:fd=", "secret:env=", "certificates:", "certificates:cert=a,",
        "certificates:cert=a,key=b,ca=c,", "certificates:cert=a,key=b,ca=c,protection="}) {
    const Result<Auth> parsed = parse(before + kSecret);
    ASSERT_FALSE(parsed.ok()) << before;
    EXPECT_EQ(parsed.error().text.find(kSecret), std::string::npos) << parsed.error().text;
    EXPECT_TRUE(parsed.error().text.starts_with("--auth: ")) << parsed.error().text;
  }
}

TEST(Auth, WaitsForNobodyWhoWritesIntoAPipe) {
  // Goal: a name that is that of a pipe is an error, and no worker that hangs. Method: one that
  // nobody writes into, in the place of each file.
  const TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const Result<Auth> secret = parse("secret:file=" + pipe);
  ASSERT_FALSE(secret.ok());
  EXPECT_NE(secret.error().text.find("'" + pipe + "': it is no file"), std::string::npos)
      << secret.error().text;
  TestAuthority authority;
  for (std::string CertificateFiles::*const place :
       {&CertificateFiles::chain, &CertificateFiles::key, &CertificateFiles::authorities,
        &CertificateFiles::revoked}) {
    CertificateFiles files = authority.issue("ps");
    files.*place = pipe;
    const auto made =
        Credentials::make({.kind = Auth::Kind::certificates, .secret = {}, .files = files});
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text.find("'" + pipe + "' cannot be read: it is no file"),
              std::string::npos)
        << made.error().text;
  }
}

TEST(Auth, NamesTheFileThatIsNoCertificate) {
  TestAuthority authority;
  const CertificateFiles good = authority.issue("ps");
  const auto with = [&](auto change) {
    CertificateFiles files = good;
    change(files);
    return Credentials::make({.kind = Auth::Kind::certificates, .secret = {}, .files = files});
  };
  EXPECT_TRUE(with([](CertificateFiles&) {}).ok());
  const CertificateFiles other = authority.issue("other");
  const std::pair<std::string, Result<std::shared_ptr<Credentials>>> wrong[] = {
      {"/nowhere.pem", with([](CertificateFiles& files) { files.chain = "/nowhere.pem"; })},
      {good.chain, with([](CertificateFiles& files) { files.key = files.chain; })},
      {other.key, with([&](CertificateFiles& files) { files.key = other.key; })},
      {good.key, with([](CertificateFiles& files) { files.authorities = files.key; })},
      {good.key, with([](CertificateFiles& files) { files.revoked = files.key; })},
  };
  for (const auto& [file, made] : wrong) {
    ASSERT_FALSE(made.ok()) << file;
    EXPECT_NE(made.error().text.find(file), std::string::npos) << made.error().text;
    if (file.starts_with("/nowhere"))
      EXPECT_NE(made.error().text.find("No such file"), std::string::npos) << made.error().text;
  }
}

TEST(Seal, IsBrokenByWhoeverHasNotTheSecret) {
  const Seal ours(Auth{.kind = Auth::Kind::secret, .secret = kSecret, .files = {}});
  const Seal theirs(Auth{.kind = Auth::Kind::secret, .secret = kSecret + "2", .files = {}});
  const Seal none;
  const std::string sealed = ours.close("members/0", "text");
  EXPECT_EQ(ours.open("members/0", sealed).or_throw(), "text");
  EXPECT_EQ(none.open("members/0", none.close("members/0", "text")).or_throw(), "text");
  EXPECT_EQ(ours.open("a", ours.close("a", "")).or_throw(), "");

  EXPECT_FALSE(ours.open("members/1", sealed).ok()) << "another place";
  EXPECT_FALSE(theirs.open("members/0", sealed).ok());
  EXPECT_FALSE(none.open("members/0", sealed).ok());
  EXPECT_FALSE(ours.open("members/0", none.close("members/0", "text")).ok());
  for (size_t bytes = 0; bytes < sealed.size(); ++bytes)
    EXPECT_FALSE(ours.open("members/0", sealed.substr(0, bytes)).ok()) << bytes;
  for (size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_FALSE(ours.open("members/0", changed).ok()) << at;
  }
}

}  // namespace
}  // namespace rehearsal::real
