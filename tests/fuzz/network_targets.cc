#include <cstring>
#include <memory>
#include <utility>

#include "core/base/hash.h"
#include "core/node/hello.h"
#include "real_net/auth/credentials.h"
#include "real_net/auth/secure_channel.h"
#include "real_net/tcp/frame_parser.h"
#include "real_net/tcp/frame_writer.h"
#include "real_net/tcp/handshake.h"
#include "real_net/tcp/slab_pool.h"
#include "real_net/worker/http_answer.h"
#include "real_net/worker/member_record.h"
#include "tests/fuzz/target.h"

// Bytes as they come from a socket.
namespace rehearsal::fuzz {
namespace {

using real::FrameParser;
using real::FrameWriter;
using real::Handshake;

std::string written(FrameWriter& writer) {
  std::string bytes;
  std::array<iovec, 16> room{};
  while (!writer.empty()) {
    const size_t entries = writer.gather(room, 1 << 20);
    uint64_t taken = 0;
    for (size_t i = 0; i < entries; ++i) {
      bytes.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      taken += room[i].iov_len;
    }
    writer.consume(taken);
  }
  return bytes;
}

std::string written(const Frame& frame) {
  FrameWriter writer;
  writer.append(frame);
  return written(writer);
}

constexpr size_t kChecksum = 8;  // the last of both kinds of header

uint64_t checksum(std::string_view head, std::string_view tail) {
  const uint64_t first = hash_bytes(head.data(), head.size() - kChecksum);
  return hash_bytes(tail.data(), tail.size(), first);
}

void set_word(std::string& bytes, size_t at, uint64_t word) {
  std::memcpy(bytes.data() + at, &word, sizeof word);
}

// Gives what looks like frames and handshakes the checksums they should have, so that an input
// comes through to what lies behind them.
void mend_checksums(std::string& stream) {
  size_t at = 0;
  while (stream.size() - at >= kWireHeaderBytes) {
    const std::string_view rest = std::string_view(stream).substr(at);
    const std::string_view head = rest.substr(0, kWireHeaderBytes);
    uint64_t bytes = 0;
    if (real::is_handshake(as_bytes(head))) {
      const auto header = real::parse_handshake_header(as_bytes(head));
      if (!header.ok()) return;
      bytes = kWireHeaderBytes + header.value().text_bytes;
    } else {
      const auto header = parse_wire_header(as_bytes(head));
      if (!header.ok()) return;
      bytes = wire_prefix_bytes(header.value());
    }
    if (bytes > rest.size()) return;
    const std::string_view tail = rest.substr(kWireHeaderBytes, bytes - kWireHeaderBytes);
    set_word(stream, at + kWireHeaderBytes - kChecksum, checksum(head, tail));
    at += bytes;
  }
}

// Feeds the stream in pieces; false once the parser has refused it.
bool feed(FrameParser& parser, std::string_view stream, uint64_t piece,
          std::vector<Frame>& frames) {
  while (!stream.empty() && !parser.closing()) {
    uint64_t given = 0;
    for (const iovec& room : parser.room(piece)) {
      const size_t bytes = std::min(room.iov_len, stream.size());
      std::memcpy(room.iov_base, stream.data(), bytes);
      stream.remove_prefix(bytes);
      given += bytes;
    }
    must(given > 0, "a parser has room for the next byte");
    if (!parser.commit(given, frames).ok()) return false;
  }
  return true;
}

// A frame that was read is written with the bytes that were read.
void read_frames(Bytes bytes) {
  Input input(bytes);
  const uint8_t how = input.byte();
  const uint64_t piece = 1 + (how >> 2) * uint64_t{how} * 8;
  std::string stream = input.rest();
  if ((how & 1) == 0) mend_checksums(stream);
  real::SlabPool pool({.idle_bytes_max = 1 << 20});
  FrameParser parser(pool, (how & 2) == 0 ? Lane::small : Lane::large);
  std::vector<Frame> frames;
  (void)feed(parser, stream, piece, frames);
  size_t at = 0;
  for (const Frame& frame : frames) {
    const std::string again = written(frame);
    must(stream.compare(at, again.size(), again) == 0, "a frame is written as it was read");
    at += again.size();
  }
}

Frame frame_with(std::string envelope, const std::vector<uint64_t>& segments) {
  Frame frame{.header = {.kind = FrameKind::message,
                         .source = {7},
                         .destination = {8},
                         .sequence = 3,
                         .acknowledged = 2,
                         .received = {1, 2}}};
  auto body = std::make_shared<FrameBody>();
  body->envelope = std::move(envelope);
  for (const uint64_t bytes : segments) {
    auto memory = std::make_shared<std::vector<std::byte>>(bytes, std::byte{5});
    body->segments.push_back({memory, memory->data(), bytes, {}});
  }
  frame.body = std::move(body);
  return frame;
}

std::vector<std::string> first_frames() {
  std::vector<std::string> inputs;
  const std::string small = written(frame_with("envelope", {}));
  const std::string large = written(frame_with("envelope", {64, 0, 300}));
  const std::string ack = written(Frame{.header = {.kind = FrameKind::ack}});
  const Handshake closing{.kind = real::HandshakeKind::closing,
                          .text = real::error_to_text({.text = "why"})};
  const std::string end = real::encode_handshake(closing);
  for (const std::string& stream : {small, large, ack, end, ack + small + large + end})
    for (const char how : {'\0', '\2', '\x40'}) inputs.push_back(how + stream);
  return inputs;
}

// All texts that a worker takes from another one before, or instead of, a frame.
void read_hello(Bytes bytes) {
  Input input(bytes);
  std::string stream = input.rest();
  mend_checksums(stream);
  (void)real::error_from_text(stream);
  (void)real::decode_member(stream);
  if (const Result<Greeting> greeting = greeting_from_text(stream); greeting.ok()) {
    const Result<Greeting> again = greeting_from_text(to_text(greeting.value()));
    must(again.ok() && to_text(again.value()) == to_text(greeting.value()),
         "a greeting is read as it was written");
    (void)check_greeting(greeting.value(), again.value(), "worker");
  }
  if (stream.size() < real::kHandshakeBytes) return;
  const auto header =
      real::parse_handshake_header(as_bytes(stream).subspan(0, real::kHandshakeBytes));
  if (!header.ok()) return;
  const Result<Handshake> handshake =
      real::finish_handshake(header.value(), stream.substr(real::kHandshakeBytes));
  if (!handshake.ok()) return;
  must(real::encode_handshake(handshake.value()) == stream,
       "a handshake is written as it was read");
  (void)real::error_from_text(handshake.value().text);
  (void)greeting_from_text(handshake.value().text);
}

std::vector<std::string> first_hellos() {
  const std::string greeting = to_text(greeting_of_this_process("worker", 3, "f(i)\ng(T)"));
  std::vector<std::string> inputs = {
      greeting,
      real::error_to_text(
          {.kind = ErrorKind::timeout, .text = "text", .worker = "w", .chain = {"a"}}),
      real::encode(real::MemberRecord{"name", {"127.0.0.1", 29500}, {7}, 3})};
  for (uint8_t kind = 0; kind <= static_cast<uint8_t>(real::HandshakeKind::presence); ++kind)
    for (const Lane lane : {Lane::small, Lane::large})
      inputs.push_back(real::encode_handshake({.kind = static_cast<real::HandshakeKind>(kind),
                                               .lane = lane,
                                               .from = {1},
                                               .to = {2},
                                               .incarnation = {3},
                                               .token = 4,
                                               .text = greeting}));
  return inputs;
}

void read_http(Bytes bytes) {
  Input input(bytes);
  const bool ended = input.byte() % 2 == 1;
  const auto answer = real::http_answer(input.rest(), ended, [] { return std::string("page\n"); });
  must(!ended || answer.has_value(), "every request is answered when no more of it comes");
  must(!answer || answer->starts_with("HTTP/1."), "an answer has a status line");
}

const std::shared_ptr<real::Credentials>& credentials() {
  static const std::shared_ptr<real::Credentials> ours =
      real::Credentials::make(
          {.kind = real::Auth::Kind::secret, .secret = "a secret of this group", .files = {}})
          .value();
  return ours;
}

// A stranger at a worker's port, or at the port that a worker has connected to: it proves nothing.
void read_tls(Bytes bytes) {
  Input input(bytes);
  const bool connects = input.byte() % 2 == 1;
  const std::unique_ptr<real::SecureChannel> channel = credentials()->open(connects).value();
  std::string out;
  for (bool goes_on = true; goes_on;) {
    const std::string piece = input.text(input.byte() * 8 + 1);
    channel->feed(as_bytes(piece));
    const Result<bool> proved = channel->shake_hands(out);
    must(!proved.ok() || !proved.value(), "a stranger proves nothing");
    goes_on = proved.ok() && input.left() > 0;
  }
}

std::vector<std::string> first_strangers() {
  std::vector<std::string> inputs;
  const std::string all_at_once = "\xff";
  for (const bool connects : {true, false}) {
    std::string words;
    (void)credentials()->open(connects).value()->shake_hands(words);
    inputs.push_back((connects ? '\0' : '\1') + all_at_once + words);
  }
  return inputs;
}

}  // namespace

std::vector<Target> network_targets() {
  return {
      {"frame", "the bytes of one lane, as frames", &read_frames, &first_frames},
      {"hello", "handshakes, greetings, and texts of the rendezvous", &read_hello, &first_hellos},
      {"tls", "a stranger's side of a TLS handshake", &read_tls, &first_strangers},
      {"http", "a request to the metrics' port", &read_http,
       [] { return std::vector<std::string>{"\1GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"}; }}};
}

}  // namespace rehearsal::fuzz
