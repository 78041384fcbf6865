#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "core/base/hash.h"
#include "real_net/tcp/frame_writer.h"
#include "real_net/tcp/handshake.h"
#include "tests/conformance/transport_suite.h"
#include "tests/real_net/support/tcp_world.h"

// The bytes that strangers send to a listening port.
namespace rehearsal::real {
namespace {

using conformance::small_frame;
using What = conformance::RecordingSink::What;
using std::chrono::milliseconds;

uint64_t resident_bytes() {
  FILE* file = std::fopen("/proc/self/statm", "r");
  uint64_t total = 0;
  uint64_t resident = 0;
  EXPECT_EQ(std::fscanf(file, "%lu %lu", &total, &resident), 2);
  std::fclose(file);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// A blocking client that gives up after a second.
class Client {
 public:
  explicit Client(uint16_t port) {
    fd_ = begin_connect({.host = "127.0.0.1", .port = port}).or_throw();
    fcntl(fd_.get(), F_SETFL, 0);
    const timeval limit{.tv_sec = 2, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  void send(std::string_view bytes) {
    [[maybe_unused]] const ssize_t sent =
        ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  // Sends as many copies of `bytes`, at most, as the other end takes: it has taken none for half a
  // second when this ends.
  size_t send_while_taken(const std::string& bytes, size_t copies) {
    const auto waits = [this] {
      return wait_writable(fd_.get(), std::chrono::steady_clock::now() + milliseconds(500));
    };
    size_t sent = 0;
    while (sent < copies * bytes.size() && waits()) {
      const size_t at = sent % bytes.size();
      const ssize_t count =
          ::send(fd_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) sent += static_cast<size_t>(count);
    }
    return sent;
  }
  void end() { shutdown(fd_.get(), SHUT_WR); }
  // Reads until the other end hangs up; false if it does not.
  bool hung_up() {
    char bytes[4096];
    for (;;) {
      const ssize_t count = recv(fd_.get(), bytes, sizeof bytes, 0);
      if (count == 0 || (count < 0 && errno == ECONNRESET)) return true;
      if (count < 0) return false;
    }
  }

 private:
  FileDescriptor fd_;
};

std::string valid_hello(uint64_t token, Lane lane) {
  return encode_handshake({.kind = HandshakeKind::hello,
                           .lane = lane,
                           .from = {0},
                           .to = {1},
                           .incarnation = {77},
                           .token = token,
                           .text = "greeting"});
}

std::string bytes_of(const std::vector<Frame>& frames) {
  FrameWriter writer;
  for (const Frame& frame : frames) writer.append(frame);
  std::array<iovec, 8> room;
  std::string bytes;
  while (!writer.empty()) {
    uint64_t taken = 0;
    const size_t used = writer.gather(room, UINT64_MAX);
    for (size_t i = 0; i < used; ++i) {
      bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      taken += room[i].iov_len;
    }
    writer.consume(taken);
  }
  return bytes;
}

std::string some_frames() {
  return bytes_of({small_frame(1), conformance::frame_with(2, {100, 5'000})});
}

// Changes, cuts, repeats or inserts bytes, as `number` says.
std::string mutate(std::string bytes, uint64_t number) {
  const uint64_t changes = 1 + mix(number, 1) % 4;
  for (uint64_t change = 0; change < changes && !bytes.empty(); ++change) {
    const uint64_t draw = mix(number, 10 + change);
    const size_t at = mix(number, 20 + change) % bytes.size();
    switch (draw % 5) {
      case 0:
        bytes[at] = static_cast<char>(draw >> 8);
        break;
      case 1:
        bytes.resize(at);
        break;
      case 2:
        bytes.insert(at, bytes.substr(at / 2, 1 + (draw >> 8) % 200));
        break;
      case 3:
        bytes.erase(at, 1 + (draw >> 8) % 40);
        break;
      case 4:
        std::memset(bytes.data() + at, static_cast<int>(draw >> 8),
                    std::min<size_t>(bytes.size() - at, 8));
        break;
    }
  }
  return bytes;
}

std::string garbage(uint64_t number) {
  std::string bytes(mix(number, 3) % 400, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(mix(number, 100 + i));
  return bytes;
}

// A worker that listens and has opened worker 0, which is played by the tests.
class HostileBytes : public testing::Test {
 protected:
  explicit HostileBytes(const TransportOptions& options = TcpWorld::quick_options())
      : end_({1}, 1, options) {
    run_on(end_.runtime, [this] { end_.transport.open({0}); });
  }
  uint16_t port() const { return end_.transport.address().port; }
  TcpTransport::Census census() {
    TcpTransport::Census census;
    run_on(end_.runtime, [&] { census = end_.transport.census(); });
    return census;
  }

  TcpEnd end_;
};

TEST_F(HostileBytes, TenThousandMutatedInputsEndInClosedConnections) {
  // Goal: an error or a closed connection each time, no crash, no growth. Method: hellos and frames
  // changed at random, whole and garbage, one after another.
  const std::string frames = some_frames();
  uint64_t before = 0;
  for (uint64_t number = 0; number < 10'000; ++number) {
    if (number == 1'000) {
      malloc_trim(0);
      before = resident_bytes();
    }
    const uint64_t token = 1 + number;
    Client client(port());
    switch (number % 4) {
      case 0:
        client.send(garbage(number));
        break;
      case 1:
        client.send(mutate(valid_hello(token, Lane::small), number));
        break;
      case 2:
        client.send(mutate(valid_hello(token, Lane::small) + frames, number));
        break;
      case 3: {
        Client large(port());
        client.send(valid_hello(token, Lane::small));
        large.send(valid_hello(token, Lane::large));
        client.send(mutate(frames, number));
        large.send(mutate(frames, number + 1));
        large.end();
        break;
      }
    }
    client.end();
  }
  malloc_trim(0);
  EXPECT_LT(resident_bytes(), before + (uint64_t{48} << 20));
  // It still serves a worker that behaves.
  end_.sink.clear();
  Client small(port());
  Client large(port());
  small.send(valid_hello(1 << 20, Lane::small));
  large.send(valid_hello(1 << 20, Lane::large));
  small.send(some_frames());
  // The events of the last of the others may still come before it.
  EXPECT_TRUE(wait_until(end_.runtime, [this] {
    return end_.sink.count(What::up) > 0 && end_.sink.last(What::up).hello.greeting == "greeting" &&
           end_.sink.count(What::frame) >= 2;
  }));
}

TEST_F(HostileBytes, SilentStrangersAreHungUpOnAndBounded) {
  // Goal: a half-open handshake costs little and ends. Method: more of them than are kept.
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 400; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    if (i % 2 == 0) clients.back()->send(valid_hello(5, Lane::small).substr(0, 40));
  }
  EXPECT_TRUE(wait_until(end_.runtime, [this] { return census().unidentified == 256; }));
  EXPECT_TRUE(clients.front()->hung_up());
  EXPECT_TRUE(wait_until(end_.runtime, [this] { return census().unidentified == 0; }));
  EXPECT_TRUE(clients.back()->hung_up());
}

TEST_F(HostileBytes, AHelloForSomebodyElseIsNotAnswered) {
  Client client(port());
  client.send(encode_handshake(
      {.kind = HandshakeKind::hello, .from = {0}, .to = {5}, .incarnation = {7}, .token = 1}));
  EXPECT_TRUE(client.hung_up());
  Client unknown(port());
  unknown.send(encode_handshake({.kind = HandshakeKind::hello,
                                 .from = {4'000'000},
                                 .to = {1},
                                 .incarnation = {7},
                                 .token = 1}));
  EXPECT_TRUE(unknown.hung_up());
  EXPECT_EQ(end_.sink.reports().size(), 0u);
}

TEST_F(HostileBytes, TheTextOfAHelloThatIsOfNoUseIsNotWaitedFor) {
  // Goal: nobody has a megabyte kept by a hello that is refused anyway. Method: hellos that promise
  // a text and stop within it; one that can be of use is waited for.
  Handshake hello{.kind = HandshakeKind::hello,
                  .from = {0},
                  .to = {5},
                  .incarnation = {7},
                  .token = 1,
                  .text = std::string(100'000, 'x')};
  const auto beginning = [&] { return encode_handshake(hello).substr(0, 1'000); };
  Client elsewhere(port());
  elsewhere.send(beginning());
  EXPECT_TRUE(elsewhere.hung_up());
  hello.to = {1};
  hello.run = 99;
  Client of_another_run(port());
  of_another_run.send(beginning());
  of_another_run.end();
  EXPECT_TRUE(of_another_run.hung_up());
  hello.run = 0;
  Client of_use(port());
  of_use.send(beginning());
  EXPECT_TRUE(wait_until(end_.runtime, [this] { return census().unidentified == 1; }));
  EXPECT_EQ(end_.sink.reports().size(), 0u);
}

TEST_F(HostileBytes, WhoSendsFasterThanTheStrandTakesIsMadeToWait) {
  // Goal: what the strand has yet to take does not grow with what a peer sends. Method: the strand
  // is held while a peer sends all that is taken of it, which is what the kernel keeps and a
  // little more; then the strand goes on, and everything that was sent arrives.
  const std::string frame = bytes_of({small_frame(1, std::string(30'000, 'e'))});
  Client small(port()), large(port());
  small.send(valid_hello(9, Lane::small));
  large.send(valid_hello(9, Lane::large));
  ASSERT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.up(); }));
  std::atomic<bool> is_held{false}, goes_on{false};
  std::thread holder([&] {
    end_.runtime.post([&] {
      is_held = true;
      while (!goes_on) std::this_thread::yield();
    });
  });
  while (!is_held) std::this_thread::yield();
  const size_t sent = small.send_while_taken(frame, (size_t{128} << 20) / frame.size());
  goes_on = true;
  holder.join();
  EXPECT_LT(sent, size_t{64} << 20);
  const size_t whole = sent / frame.size();
  EXPECT_TRUE(wait_until(end_.runtime, [&] { return end_.sink.count(What::frame) == whole; }));
  EXPECT_TRUE(end_.sink.up());
}

// The same with limits that a test can wait for.
class ImpatientHostileBytes : public HostileBytes {
 protected:
  static TransportOptions options() {
    TransportOptions made = TcpWorld::quick_options();
    made.handshake_timeout = milliseconds(500);
    made.frame_timeout = milliseconds(1'500);
    made.linger_timeout = std::chrono::seconds(60);
    made.answers_max = 8;
    return made;
  }
  ImpatientHostileBytes() : HostileBytes(options()) {}
};

TEST_F(ImpatientHostileBytes, HalfALinkIsNotKept) {
  // Method: a valid hello on one lane, again and again with other tokens, and nothing on the other.
  Client only(port());
  only.send(valid_hello(9, Lane::small));
  EXPECT_TRUE(only.hung_up());
  Client large(port());
  large.send(valid_hello(11, Lane::large));
  EXPECT_TRUE(large.hung_up());
  EXPECT_EQ(end_.sink.count(What::up), 0u);
}

TEST_F(ImpatientHostileBytes, AFrameThatDoesNotGoOnLosesTheLink) {
  // Goal: memory is not held for as long as a peer likes. Method: half a frame; before, one that
  // comes slowly but comes, which must not be cut.
  Client small(port()), large(port());
  small.send(valid_hello(9, Lane::small));
  large.send(valid_hello(9, Lane::large));
  ASSERT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.up(); }));
  const std::string frames = some_frames();
  const size_t step = frames.size() / 20 + 1;
  for (size_t at = 0; at < frames.size(); at += step) {
    large.send(frames.substr(at, step));
    std::this_thread::sleep_for(milliseconds(100));
  }
  ASSERT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.count(What::frame) == 2; }));
  std::this_thread::sleep_for(milliseconds(1'800));
  ASSERT_TRUE(end_.sink.up()) << "an idle link is cut";
  large.send(frames.substr(0, frames.size() - 3));
  ASSERT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.count(What::lost) == 1; }));
  EXPECT_NE(end_.sink.last(What::lost).why.text.find("does not go on"), std::string::npos);
}

TEST_F(ImpatientHostileBytes, AnswersThatNobodyTakesAreBounded) {
  // Method: many who ask whether this worker is there, and do not hang up.
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->send(encode_handshake({.kind = HandshakeKind::question,
                                           .from = {1},
                                           .to = {1},
                                           .incarnation = {77},
                                           .token = 1}));
  }
  EXPECT_TRUE(wait_until(end_.runtime, [this] {
    const TcpTransport::Census now = census();
    return now.unidentified == 0 && now.leaving == 8;
  }));
}

TEST_F(ImpatientHostileBytes, WordsToTryAgainThatNobodyTakesAreBounded) {
  // Method: many who say that they were linked before, in another life, and do not hang up: each is
  // to begin with its greeting.
  std::vector<std::unique_ptr<Client>> clients;
  for (uint64_t i = 0; i < 100; ++i) {
    clients.push_back(std::make_unique<Client>(port()));
    clients.back()->send(encode_handshake({.kind = HandshakeKind::hello,
                                           .from = {0},
                                           .to = {1},
                                           .incarnation = {78},
                                           .token = 1 + i,
                                           .last_token = 5,
                                           .text = ""}));
  }
  EXPECT_TRUE(wait_until(end_.runtime, [this] {
    const TcpTransport::Census now = census();
    return now.unidentified == 0 && now.leaving == 8;
  }));
  EXPECT_TRUE(clients.back()->hung_up());
  EXPECT_EQ(census().leaving, 8u);
  EXPECT_EQ(end_.sink.count(What::up), 0u);
}

TEST_F(HostileBytes, ABadChecksumLosesTheLinkAndSaysWhy) {
  Client small(port());
  Client large(port());
  small.send(valid_hello(9, Lane::small));
  large.send(valid_hello(9, Lane::large));
  std::string frames = some_frames();
  frames[kWireHeaderBytes + 2] ^= 1;
  small.send(frames);
  ASSERT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.count(What::lost) == 1; }));
  const auto lost = end_.sink.last(What::lost);
  EXPECT_FALSE(lost.closed);
  EXPECT_NE(lost.why.text.find("checksum"), std::string::npos) << lost.why.text;
  EXPECT_EQ(end_.sink.count(What::frame), 0u);
  EXPECT_TRUE(small.hung_up());
  EXPECT_TRUE(large.hung_up());
}

TEST_F(HostileBytes, ASegmentThatIsPromisedAndNeverComesCostsNoMemory) {
  auto body = std::make_shared<FrameBody>();
  body->segments.push_back({.owner = nullptr, .data = nullptr, .bytes = uint64_t{1} << 36});
  std::string prefix;
  append_wire_prefix({.header = {.kind = FrameKind::message, .sequence = 1}, .body = body}, prefix);
  const uint64_t before = resident_bytes();
  {
    Client small(port());
    Client large(port());
    small.send(valid_hello(9, Lane::small));
    large.send(valid_hello(9, Lane::large));
    large.send(prefix + std::string(1 << 20, 'x'));
    ASSERT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.up(); }));
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_LT(resident_bytes(), before + (uint64_t{32} << 20));
  }
  EXPECT_TRUE(wait_until(end_.runtime, [this] { return end_.sink.count(What::lost) == 1; }));
}

}  // namespace
}  // namespace rehearsal::real
