// Ends that have not the group's secret, or another worker's certificate.
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "real_net/tcp/handshake.h"
#include "tests/real_net/support/certificates.h"
#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::real {
namespace {

const std::string kSecret = "a secret of this test";

struct End : TcpEnd {
  End(uint32_t worker, std::shared_ptr<Credentials> credentials, std::vector<std::string>* told)
      : TcpEnd({worker}, 1, options(std::move(credentials), told)) {}

  static TransportOptions options(std::shared_ptr<Credentials> credentials,
                                  std::vector<std::string>* told) {
    TransportOptions made = TcpWorld::quick_options();
    made.names = {"ps", "trainer"};
    made.credentials = std::move(credentials);
    made.on_unproven = [told](const Error& error) { told->push_back(error.text); };
    return made;
  }
};

void introduce(End& a, End& b) {
  const auto tell = [](End& self, End& other) {
    run_on(self.runtime, [&] {
      self.transport.set_address(other.hello.worker, other.transport.address());
      self.transport.open(other.hello.worker);
    });
  };
  tell(a, b);
  tell(b, a);
}

// The end has no link when it has told why.
void expect_no_link(End& end, const std::vector<std::string>& told, const std::string& why) {
  EXPECT_TRUE(wait_until(end.runtime, [&] {
    bool heard = false;
    run_on(end.runtime, [&] { heard = !told.empty(); });
    return heard;
  }));
  EXPECT_FALSE(end.sink.up());
  EXPECT_NE(told[0].find(why), std::string::npos) << told[0];
}

// Neither end has a link when the first one has told why.
void expect_apart(End& a, End& b, const std::vector<std::string>& told, const std::string& why) {
  expect_no_link(a, told, why);
  EXPECT_FALSE(b.sink.up());
}

TEST(Unproven, EndsWithAnotherSecretHaveNoLink) {
  std::vector<std::string> told, ignored;
  End a(0, with_secret(kSecret), &told), b(1, with_secret("another secret of others"), &ignored);
  introduce(a, b);
  expect_apart(a, b, told, "has not proved that it belongs to this group");
}

TEST(Unproven, AnEndWithoutASecretHasNoLink) {
  std::vector<std::string> told, ignored;
  End a(0, with_secret(kSecret), &told), b(1, nullptr, &ignored);
  introduce(a, b);
  expect_apart(a, b, told, "has not proved that it belongs to this group");
}

TEST(Unproven, EndsWithTheSameSecretHaveOne) {
  std::vector<std::string> told;
  End a(0, with_secret(kSecret), &told), b(1, with_secret(kSecret), &told);
  introduce(a, b);
  EXPECT_TRUE(wait_until(a.runtime, [&] { return a.sink.up() && b.sink.up(); }));
}

std::shared_ptr<Credentials> certified(TestAuthority& authority, const std::string& name) {
  return Credentials::make(
             {.kind = Auth::Kind::certificates, .secret = {}, .files = authority.issue(name)})
      .or_throw();
}

TEST(Unproven, ACertificateIsGoodForOneWorkerOnly) {
  TestAuthority authority;
  const auto of_ps = certified(authority, "ps"), of_trainer = certified(authority, "trainer");
  std::vector<std::string> told, ignored;
  {
    End a(0, of_ps, &told), b(1, of_trainer, &ignored);
    introduce(a, b);
    EXPECT_TRUE(wait_until(a.runtime, [&] { return a.sink.up() && b.sink.up(); }));
  }
  End a(0, of_ps, &told), impostor(1, certified(authority, "observer"), &ignored);
  introduce(a, impostor);
  // The impostor believes the first one, with good reason, and is cut when it has shown itself.
  expect_no_link(a, told, "says it is worker 'trainer' shows a certificate of another name");
}

TEST(Unproven, WhoConnectsWithAnotherCertificateHasNoLinkEither) {
  // Goal: the end that is connected to looks at the name, too. Method: it knows no address to
  // connect to; the impostor does, and comes again and again, as the bytes tell that pass by.
  TestAuthority authority;
  std::vector<std::string> told, ignored;
  End a(0, certified(authority, "ps"), &told),
      impostor(1, certified(authority, "observer"), &ignored);
  run_on(a.runtime, [&] { a.transport.open(impostor.hello.worker); });
  FaultProxy proxy(a.transport.address().port);
  run_on(impostor.runtime, [&] {
    impostor.transport.set_address(a.hello.worker, {.host = "127.0.0.1", .port = proxy.port()});
    impostor.transport.open(a.hello.worker);
  });
  expect_no_link(a, told, "says it is worker 'trainer' shows a certificate of another name");
  const uint64_t at_once = proxy.forwarded_bytes();
  EXPECT_TRUE(wait_until(a.runtime, [&] { return proxy.forwarded_bytes() > 4 * at_once; }));
  EXPECT_EQ(a.sink.count(conformance::RecordingSink::What::up), 0u);
}

// A connection that says what it likes.
struct Stranger {
  explicit Stranger(const TcpEnd& end)
      : socket(connect_within(end.transport.address(),
                              std::chrono::steady_clock::now() + std::chrono::seconds(60))
                   .or_throw()) {}
  // Sends bytes, and reads what is said until the other end hangs up.
  std::string say(const std::string& bytes) {
    (void)::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    std::string answer;
    char room[1000];
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (wait_readable(socket.get(), limit)) {
      const ssize_t count = recv(socket.get(), room, sizeof room, 0);
      if (count <= 0) break;
      answer.append(room, static_cast<size_t>(count));
    }
    return answer;
  }
  FileDescriptor socket;
};

TEST(Unproven, AStrangerLearnsNothingAndMovesNothing) {
  // Goal: a hello with everything right but the proof is not heard. Method: while a link stands, a
  // stranger says hello as its peer, on both lanes, asks who is there, and says things without
  // sense; what it hears in return is no word of our protocol, and the link stays.
  std::vector<std::string> told;
  End a(0, with_secret(kSecret), &told), b(1, with_secret(kSecret), &told);
  introduce(a, b);
  ASSERT_TRUE(wait_until(a.runtime, [&] { return a.sink.up() && b.sink.up(); }));
  const auto ups = [&] { return a.sink.count(conformance::RecordingSink::What::up); };
  const size_t before = ups();
  for (const HandshakeKind kind : {HandshakeKind::hello, HandshakeKind::question}) {
    for (const Lane lane : {Lane::small, Lane::large}) {
      const std::string answer =
          Stranger(a).say(encode_handshake({.kind = kind,
                                            .lane = lane,
                                            .from = b.hello.worker,
                                            .to = a.hello.worker,
                                            .incarnation = b.hello.incarnation,
                                            .token = 77,
                                            .text = "false greeting"}));
      EXPECT_LT(answer.size(), 32u) << "no more than an alert of TLS";
    }
  }
  (void)Stranger(a).say("GET / HTTP/1.1\r\n\r\n");
  (void)Stranger(a).say(std::string(100'000, '\0'));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(a.sink.up());
  EXPECT_EQ(ups(), before) << "the link was replaced";
  EXPECT_TRUE(wait_until(a.runtime, [&] { return a.transport.census().unidentified == 0; }));
}

TEST(Unproven, AStrangerIsNotHeardForLong) {
  // Goal: nobody takes the time of the thread that polls by a proof without an end. Method: a hello
  // of TLS that announces 130,816 bytes and comes in records of one byte each.
  std::vector<std::string> told;
  End a(0, with_secret(kSecret), &told);
  const std::string record("\x16\x03\x01\x00\x01", 5);
  const std::string announced("\x01\x01\xff\x00", 4);
  std::string bytes;
  for (size_t i = 0; i < 8'000; ++i) bytes += record + (i < announced.size() ? announced[i] : 'x');
  (void)Stranger(a).say(bytes);
  expect_no_link(a, told, "bytes and has not proved that it belongs to this group");
}

// A member that has proved itself, and does with its keys what it likes.
struct FaithlessMember : Stranger {
  FaithlessMember(const TcpEnd& end, const CertificateFiles& files) : Stranger(end) {
    const std::string protection(name_of(Protection::tls));
    const std::string offer = static_cast<char>(protection.size()) + protection;
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context, files.chain.c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(offer.data()),
                                      static_cast<unsigned>(offer.size())),
              0);
    keys = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_connect_state(keys);
    channel = std::make_unique<SecureChannel>(keys, Protection::tls);
    prove();
  }

  void prove() {
    std::string said;
    while (!channel->shake_hands(said).value()) {
      EXPECT_EQ(::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(said.size()));
      said.clear();
      std::byte room[4'096];
      ASSERT_TRUE(
          wait_readable(socket.get(), std::chrono::steady_clock::now() + std::chrono::seconds(60)));
      const ssize_t count = recv(socket.get(), room, sizeof room, 0);
      ASSERT_GT(count, 0);
      channel->feed(std::span(room).first(static_cast<size_t>(count)));
    }
    (void)::send(socket.get(), said.data(), said.size(), MSG_NOSIGNAL);
  }

  // Records that renew the key and carry nothing.
  [[nodiscard]] std::string renewals(int count) {
    std::string said;
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(SSL_key_update(keys, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
      EXPECT_TRUE(channel->shake_hands(said).ok());
    }
    return said;
  }

  SSL* keys = nullptr;  // the channel's
  std::unique_ptr<SecureChannel> channel;
};

TEST(Unproven, AMemberThatOnlyRenewsItsKeyIsHungUpOn) {
  // Goal: records without data, which are read without an end in sight, cost their sender the
  // connection. Method: some renewals are taken; more of them than a record has bytes are not. No
  // limit of time could have cut the connection.
  TestAuthority authority;
  const auto of_ps =
      Credentials::make(
          {.kind = Auth::Kind::certificates, .secret = {}, .files = authority.issue("ps")})
          .or_throw();
  TransportOptions options = TcpWorld::quick_options();
  options.credentials = of_ps;
  options.handshake_timeout = std::chrono::minutes(10);
  TcpEnd a({0}, 1, options);
  FaithlessMember member(a, authority.issue("trainer"));
  const std::string few = member.renewals(10);
  ASSERT_EQ(::send(member.socket.get(), few.data(), few.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(few.size()));
  EXPECT_TRUE(wait_until(a.runtime, [&] { return a.transport.census().unidentified == 1; }));
  const std::string many = member.renewals(3'000);
  ASSERT_GT(many.size(), 64'000u);
  (void)member.say(many);
  EXPECT_TRUE(wait_until(a.runtime, [&] { return a.transport.census().unidentified == 0; }));
}

}  // namespace
}  // namespace rehearsal::real
