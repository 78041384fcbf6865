#include "real_net/auth/secure_channel.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <thread>

#include "real_net/auth/credentials.h"
#include "tests/real_net/support/certificates.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// Two ends whose network is a text that is passed on.
struct Ends {
  Ends(Credentials& a, Credentials& b)
      : client(a.open(/*connects=*/true).or_throw()),
        server(b.open(/*connects=*/false).or_throw()) {}

  // Whether both have proved themselves; `why` is the error of the end that refuses.
  bool meet() {
    for (int round = 0; round < 4 && !(client_done && server_done); ++round) {
      step(*client, client_done, *server);
      step(*server, server_done, *client);
    }
    return client_done && server_done;
  }
  void step(SecureChannel& self, bool& done, SecureChannel& other) {
    std::string out;
    if (!done) {
      const Result<bool> met = self.shake_hands(out);
      if (met.ok())
        done = met.value();
      else if (why.empty())
        why = met.error().text;
    }
    other.feed(bytes_of(out));
  }

  bool client_done = false, server_done = false;
  std::string why;
  std::unique_ptr<SecureChannel> client, server;
};

Auth secret(const std::string& text, Protection protection = Protection::tls) {
  return {.kind = Auth::Kind::secret, .secret = text, .files = {}, .protection = protection};
}

std::shared_ptr<Credentials> credentials(const Auth& auth) {
  return Credentials::make(auth).or_throw();
}

std::shared_ptr<Credentials> credentials(const CertificateFiles& files) {
  return credentials(Auth{.kind = Auth::Kind::certificates, .secret = {}, .files = files});
}

std::string read_all(SecureChannel& channel) {
  std::string text;
  std::array<char, 1000> room;
  while (true) {
    const Result<size_t> count = channel.read(std::as_writable_bytes(std::span(room)));
    EXPECT_TRUE(count.ok());
    if (!count.ok() || count.value() == 0) return text;
    text.append(room.data(), count.value());
  }
}

class EachProtection : public testing::TestWithParam<Protection> {
 protected:
  const std::shared_ptr<Credentials> group_ =
      credentials(secret("sixteen bytes at least", GetParam()));
};
INSTANTIATE_TEST_SUITE_P(Protections, EachProtection,
                         testing::Values(Protection::tls, Protection::mac),
                         [](const auto& info) { return std::string(name_of(info.param)); });

TEST_P(EachProtection, CarriesWhatIsWrittenBetweenMembers) {
  const auto group = group_;
  Ends ends(*group, *group);
  ASSERT_TRUE(ends.meet()) << ends.why;
  EXPECT_TRUE(ends.client->proves("anybody"));
  const std::string text(100'000, 'x');
  std::string network;
  ASSERT_TRUE(ends.client->write(bytes_of(text), network).ok());
  const bool readable = network.find("xxxxxxxx") != std::string::npos;
  EXPECT_EQ(readable, GetParam() == Protection::mac);
  EXPECT_FALSE(ends.server->holds_input());
  ends.server->feed(bytes_of(network));
  EXPECT_TRUE(ends.server->holds_input());
  EXPECT_EQ(read_all(*ends.server), text);
  EXPECT_FALSE(ends.server->holds_input());
}

TEST(SecureChannel, RefusesAnEndWithAnotherSecret) {
  const auto group = credentials(secret("sixteen bytes at least"));
  const auto other = credentials(secret("another secret of others"));
  for (const bool stranger_connects : {false, true}) {
    Ends ends(stranger_connects ? *other : *group, stranger_connects ? *group : *other);
    EXPECT_FALSE(ends.meet());
    EXPECT_FALSE(ends.client_done && ends.server_done);
    EXPECT_NE(ends.why.find("has not proved that it belongs to this group"), std::string::npos)
        << ends.why;
  }
}

TEST(SecureChannel, RefusesAnEndThatShowsACertificateInPlaceOfTheSecret) {
  // Goal: an end that has no secret but a certificate of its own is not believed.
  TestAuthority authority;
  const auto group = credentials(secret("sixteen bytes at least"));
  const auto stranger = credentials(authority.issue("ps"));
  for (const bool stranger_connects : {false, true}) {
    Ends ends(stranger_connects ? *stranger : *group, stranger_connects ? *group : *stranger);
    EXPECT_FALSE(ends.meet());
    EXPECT_FALSE(stranger_connects ? ends.server_done : ends.client_done);
  }
}

TEST_P(EachProtection, FindsEveryChangedByte) {
  // Method: one bit of each byte in turn of what the network carries is turned.
  const auto group = group_;
  std::string network;
  for (size_t at = 0; at == 0 || at < network.size(); ++at) {
    Ends ends(*group, *group);
    ASSERT_TRUE(ends.meet());
    network.clear();
    ASSERT_TRUE(ends.client->write(bytes_of("four"), network).ok());
    network[at] = static_cast<char>(network[at] ^ 1);
    ends.server->feed(bytes_of(network));
    std::array<std::byte, 16> room;
    const Result<size_t> count = ends.server->read(room);
    // A changed length waits for more bytes, which would not fit either.
    EXPECT_TRUE(!count.ok() || count.value() == 0) << at;
  }
}

TEST_P(EachProtection, FindsWhatIsRepeatedLeftOutExchangedOrSentBack) {
  const auto write = [](SecureChannel& channel, std::string_view text) {
    std::string network;
    EXPECT_TRUE(channel.write(bytes_of(text), network).ok());
    return network;
  };
  const auto is_read = [](SecureChannel& channel, const std::string& network) {
    channel.feed(bytes_of(network));
    std::array<std::byte, 64> room;
    while (true) {
      const Result<size_t> count = channel.read(room);
      if (!count.ok() || count.value() == 0) return count.ok();
    }
  };
  for (const int wrong : {0, 1, 2, 3, 4}) {
    Ends ends(*group_, *group_);
    ASSERT_TRUE(ends.meet()) << ends.why;
    const std::string first = write(*ends.client, "first"), second = write(*ends.client, "second");
    const std::string back = write(*ends.server, "back");
    const std::string seen[] = {first + second, first + first, second, second + first, back};
    EXPECT_EQ(is_read(*ends.server, seen[wrong]), wrong == 0) << wrong;
  }
}

TEST(SecureChannel, RefusesAnotherProtectionAtBothEnds) {
  const auto one = credentials(secret("sixteen bytes at least", Protection::tls));
  const auto other = credentials(secret("sixteen bytes at least", Protection::mac));
  for (const bool one_connects : {false, true}) {
    Ends ends(one_connects ? *one : *other, one_connects ? *other : *one);
    EXPECT_FALSE(ends.meet());
    EXPECT_FALSE(ends.client_done || ends.server_done);
    EXPECT_NE(ends.why.find("names another protection"), std::string::npos) << ends.why;
  }
}

TEST_P(EachProtection, ReadsAndWritesAtTheSameTime) {
  // Goal: the two halves of a connection do not disturb each other. Method: each end writes from
  // one thread while another one reads.
  const auto group = group_;
  Ends ends(*group, *group);
  ASSERT_TRUE(ends.meet());
  const std::string text(1'000'000, 'y');
  std::string to_client, from_client;
  ASSERT_TRUE(ends.server->write(bytes_of(text), to_client).ok());
  ends.client->feed(bytes_of(to_client));
  std::thread writer([&] {
    for (size_t at = 0; at < text.size(); at += 1000)
      EXPECT_TRUE(ends.client->write(bytes_of(text).subspan(at, 1000), from_client).ok());
  });
  EXPECT_EQ(read_all(*ends.client), text);
  writer.join();
  ends.server->feed(bytes_of(from_client));
  EXPECT_EQ(read_all(*ends.server), text);
}

TEST(Certificates, ProveOneNameAndNoOther) {
  TestAuthority authority;
  const auto ps = credentials(authority.issue("ps"));
  const auto trainer = credentials(authority.issue("trainer0"));
  Ends ends(*trainer, *ps);
  ASSERT_TRUE(ends.meet()) << ends.why;
  EXPECT_TRUE(ends.client->proves("ps"));
  EXPECT_FALSE(ends.client->proves("trainer0"));
  EXPECT_TRUE(ends.server->proves("trainer0"));
  EXPECT_FALSE(ends.server->proves("ps"));
}

TEST(Certificates, ProveNamesLetterByLetter) {
  // Goal: a certificate is good for the worker that has its name, and for no other way to write it.
  // Method: names that X.509's rules for hosts take for equal.
  TestAuthority authority;
  const auto shown_by = [&](const std::string& certificate, const std::string& worker) {
    const auto end = credentials(authority.issue(certificate));
    Ends ends(*end, *end);
    EXPECT_TRUE(ends.meet()) << ends.why;
    return ends.client->proves(worker);
  };
  EXPECT_TRUE(shown_by("ps", "ps"));
  EXPECT_FALSE(shown_by("ps", "PS"));
  EXPECT_FALSE(shown_by("PS", "ps"));
  EXPECT_FALSE(shown_by("ps", std::string("ps\0", 3)));
  EXPECT_FALSE(shown_by("*.gpu.example", "a.gpu.example"));
  EXPECT_TRUE(shown_by("*.gpu.example", "*.gpu.example"));
  EXPECT_TRUE(shown_by("node.cluster", "node.cluster"));
  EXPECT_FALSE(shown_by("node.cluster", ".cluster"));
}

TEST(Certificates, OfAnotherAuthorityAreRefused) {
  TestAuthority authority, other;
  const auto ps = credentials(authority.issue("ps"));
  const auto stranger = credentials(other.issue("trainer0"));
  Ends ends(*stranger, *ps);
  EXPECT_FALSE(ends.meet());
  EXPECT_FALSE(ends.server_done);
}

TEST(Certificates, ThatAreRevokedAreRefused) {
  TestAuthority authority;
  CertificateFiles of_ps = authority.issue("ps");
  const auto trainer = credentials(authority.issue("trainer0"));
  of_ps.revoked = authority.empty_list();
  {
    const auto ps = credentials(of_ps);
    Ends ends(*trainer, *ps);
    EXPECT_TRUE(ends.meet()) << ends.why;
  }
  of_ps.revoked = authority.revoke("trainer0");
  const auto ps = credentials(of_ps);
  Ends ends(*trainer, *ps);
  EXPECT_FALSE(ends.meet());
  EXPECT_NE(ends.why.find("revoked"), std::string::npos) << ends.why;
}

// Both revocation lists in one file.
std::string lists_of(const TemporaryFolder& folder, const std::string& one,
                     const std::string& other) {
  const std::string path = folder.file("both.crl");
  std::ofstream(path) << read_whole_file(one) << read_whole_file(other);
  return path;
}

TEST(Certificates, OfAnAuthorityThatWasRevokedAreRefused) {
  // Goal: who has the key of an authority that is not believed any more makes no worker. Method: an
  // authority below another, which revokes it.
  TestAuthority authority;
  TestAuthority below(authority, "below");
  const TemporaryFolder folder;
  CertificateFiles of_ps = authority.issue("ps");
  const auto trainer = credentials(below.issue("trainer0"));
  of_ps.revoked = lists_of(folder, authority.empty_list(), below.empty_list());
  {
    const auto ps = credentials(of_ps);
    Ends ends(*trainer, *ps);
    ASSERT_TRUE(ends.meet()) << ends.why;
    EXPECT_TRUE(ends.server->proves("trainer0"));
  }
  of_ps.revoked = lists_of(folder, authority.revoke("below"), below.empty_list());
  const auto ps = credentials(of_ps);
  Ends ends(*trainer, *ps);
  EXPECT_FALSE(ends.meet());
  EXPECT_NE(ends.why.find("revoked"), std::string::npos) << ends.why;
}

// As long as it lives this process can open no file.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    set({.rlim_cur = 0, .rlim_max = before_.rlim_max});
  }
  ~NoDescriptors() { set(before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  static void set(const rlimit& limit) { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0); }
  rlimit before_{};
};

TEST(Certificates, ThatCannotBeReadOnceAreReadLater) {
  // Goal: new files do not stay unread because there was no descriptor when they came. Method: the
  // certificate changes while none is left; nobody touches its file again.
  TestAuthority authority;
  const CertificateFiles of_trainer = authority.issue("trainer0");
  const auto ps = credentials(authority.issue("ps"));
  std::vector<std::string> told;
  const auto trainer =
      Credentials::make({.kind = Auth::Kind::certificates, .secret = {}, .files = of_trainer},
                        [&](const Error& error) { told.push_back(error.text); })
          .or_throw();
  authority.replace("trainer0", "trainer1");
  std::filesystem::last_write_time(
      of_trainer.chain, std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2));
  const auto name_is = [&](const std::string& name) {
    Ends ends(*trainer, *ps);
    EXPECT_TRUE(ends.meet()) << ends.why;
    return ends.server->proves(name);
  };
  {
    const NoDescriptors none;
    EXPECT_TRUE(name_is("trainer0"));
    EXPECT_TRUE(name_is("trainer0"));
  }
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  bool is_read = false;
  while (!is_read && std::chrono::steady_clock::now() < limit) is_read = name_is("trainer1");
  EXPECT_TRUE(is_read);
  ASSERT_EQ(told.size(), 1u) << "once for a change";
  EXPECT_NE(told[0].find(of_trainer.chain), std::string::npos) << told[0];
  EXPECT_NE(told[0].find("Too many open files"), std::string::npos) << told[0];
}

TEST(Certificates, WithADamagedListAmongTheRevokedAreRefused) {
  // Goal: no list is passed over. Method: a good one, and behind it one that ends too early, as a
  // file that is half written has it, or whose letters were changed; two good ones are taken.
  TestAuthority authority;
  CertificateFiles files = authority.issue("ps");
  const std::string list = read_whole_file(authority.empty_list());
  const auto made_with = [&](const std::string& lists) {
    files.revoked = (authority.folder() / "lists.pem").string();
    std::ofstream(files.revoked) << lists;
    return Credentials::make({.kind = Auth::Kind::certificates, .secret = {}, .files = files});
  };
  ASSERT_TRUE(made_with(list).ok());
  EXPECT_TRUE(made_with(list + "words of a person\n").ok());
  std::string changed = list;
  changed[list.find('\n') + 3] = '*';
  const std::string first_line = list.substr(0, list.find('\n'));
  for (const std::string& damaged :
       {list.substr(0, list.size() / 2), changed, first_line, first_line.substr(0, 20),
        first_line.substr(0, 8), std::string("-")}) {
    const auto made = made_with(list + damaged);
    ASSERT_FALSE(made.ok());
    EXPECT_NE(made.error().text.find("a revocation list in '" + files.revoked + "' cannot be read"),
              std::string::npos)
        << made.error().text;
  }
}

TEST(Certificates, AreReadAgainWhenTheyChange) {
  TestAuthority authority;
  const CertificateFiles of_trainer = authority.issue("trainer0");
  const auto ps = credentials(authority.issue("ps"));
  std::vector<std::string> told;
  const auto trainer =
      Credentials::make({.kind = Auth::Kind::certificates, .secret = {}, .files = of_trainer},
                        [&](const Error& error) { told.push_back(error.text); })
          .or_throw();
  authority.replace("trainer0", "trainer1");
  const auto later = std::filesystem::file_time_type::clock::now() + std::chrono::seconds(2);
  std::filesystem::last_write_time(of_trainer.chain, later);
  Ends ends(*trainer, *ps);
  ASSERT_TRUE(ends.meet()) << ends.why;
  EXPECT_TRUE(ends.server->proves("trainer1"));
  EXPECT_TRUE(told.empty());

  // A file that cannot be used is told, and what was there before is used.
  std::filesystem::resize_file(of_trainer.chain, 10);
  std::filesystem::last_write_time(of_trainer.chain, later + std::chrono::seconds(2));
  Ends again(*trainer, *ps);
  EXPECT_TRUE(again.meet()) << again.why;
  EXPECT_TRUE(again.server->proves("trainer1"));
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find(of_trainer.chain), std::string::npos) << told[0];
}

}  // namespace
}  // namespace rehearsal::real
