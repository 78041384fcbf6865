#include "real_net/tcp/tcp_link.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr uint64_t kSmallLaneBytesPerFlush = uint64_t{1} << 20;
constexpr uint64_t kLargeLaneBytesPerFlush = 256 * 1024;

// A link that stood shorter counts as one more failure: attempts to make it become rare.
constexpr Duration kWorthCounting = std::chrono::seconds(1);

size_t index_of(Lane lane) { return static_cast<size_t>(lane); }

}  // namespace

std::optional<size_t> TcpLink::Pair::lane_of(const Connection& connection) const {
  for (size_t lane = 0; lane < lanes.size(); ++lane)
    if (lanes[lane].get() == &connection) return lane;
  return std::nullopt;
}

void TcpLink::Pair::abort() {
  Pair dropped = std::exchange(*this, Pair{});
  for (const auto& connection : dropped.lanes)
    if (connection) connection->abort();
}

TcpLink::TcpLink(LinkHost& host, WorkerId peer) : host_(host), peer_(peer) {}

// An attempt to reach the peer where it no longer is would only take time.
void TcpLink::set_address(Address address) {
  if (address_ == address) return;
  address_ = std::move(address);
  if (intent_ != LinkIntent::open || up_) return;
  stop_dialing();
  failures_ = 0;
  schedule_dial(/*first=*/true);
}

// Using the link.

void TcpLink::send(const Frame& frame) {
  if (!up_) return;
  standing_.lanes[index_of(lane_of(frame))]->writer().append(frame);
  above_high_water_ |= queued_bytes() > host_.options().high_water_bytes;
  host_.mark_dirty(*this);
}

uint64_t TcpLink::queued_bytes() const {
  if (!up_) return 0;
  return standing_.lanes[0]->writer().queued_bytes() + standing_.lanes[1]->writer().queued_bytes();
}

void TcpLink::flush() {
  if (!up_) return;
  standing_.lanes[0]->flush(kSmallLaneBytesPerFlush);
  standing_.lanes[1]->flush(kLargeLaneBytesPerFlush);
  on_written(*standing_.lanes[0]);
}

void TcpLink::on_written(Connection&) {
  if (!above_high_water_ || queued_bytes() > host_.options().low_water_bytes) return;
  above_high_water_ = false;
  runtime().post([this] {
    if (up_) host_.sink().on_drained(peer_);
  });
}

void TcpLink::on_frames(Connection& connection, std::vector<Frame> frames) {
  const uint64_t token = standing_.token;
  if (!standing_.lane_of(connection)) return;
  for (Frame& frame : frames) {
    host_.sink().on_frame(peer_, std::move(frame));
    if (!up_ || standing_.token != token) return;
  }
}

// Opening and closing.

void TcpLink::open() {
  if (intent_ == LinkIntent::open) return;
  intent_ = LinkIntent::open;
  closed_to_ = {};
  schedule_dial(/*first=*/true);
}

void TcpLink::close(const Error& reason) {
  if (intent_ == LinkIntent::none || intent_ == LinkIntent::closed) return;
  intent_ = LinkIntent::closed;
  reason_ = reason;
  closed_to_ = last_incarnation_;
  if (up_) {
    for (size_t lane = 0; lane < 2; ++lane) {
      Handshake record = say(HandshakeKind::closing, lane, standing_.token);
      record.text = error_to_text(reason);
      standing_.lanes[lane]->writer().append_bytes(encode_handshake(record));
    }
  }
  stop();
}

// The bytes in the writers still leave.
void TcpLink::stop() {
  stop_dialing();
  arriving_.abort();
  if (!up_) return;
  Pair ending = std::move(standing_);
  forget_link();
  for (auto& connection : ending.lanes) host_.see_off(std::move(connection));
}

// Everything is cut.
void TcpLink::abort() {
  intent_ = LinkIntent::none;
  stop_dialing();
  arriving_.abort();
  standing_.abort();
  forget_link();
}

void TcpLink::forget_link() {
  up_ = false;
  above_high_water_ = false;
  standing_ = Pair{};
  end_reason_.reset();
  cancel(end_timer_);
}

void TcpLink::cancel(std::optional<TimerId>& timer) {
  if (timer) runtime().cancel(*timer);
  timer.reset();
}

// Losing the link. Frames that the peer sent in order before its end are still delivered: a link
// that the peer ends is lost when both lanes have ended.
void TcpLink::on_end(Connection& connection, std::optional<Error> reason) {
  const auto lane = standing_.lane_of(connection);
  if (!lane) {
    Error ended;
    ended.kind = ErrorKind::peer_lost;
    ended.text = "the peer hung up";
    connection.abort();
    return on_broken(connection, ended);
  }
  standing_.done[*lane] = true;
  if (reason) end_reason_ = std::move(reason);
  Error why;
  why.kind = ErrorKind::peer_lost;
  why.text = "end of stream";
  if (standing_.done[0] && standing_.done[1]) return lost(why, false);
  if (end_timer_) return;
  end_timer_ = runtime().call_at(runtime().now() + host_.options().linger_timeout, [this, why] {
    end_timer_.reset();
    lost(why, false);
  });
}

void TcpLink::on_broken(Connection& connection, const Error& why) {
  if (standing_.lane_of(connection)) {
    lost(why, false);
  } else if (dialing_.lane_of(connection)) {
    dial_failed();
  } else if (arriving_.lane_of(connection)) {
    arriving_.abort();
  }
}

void TcpLink::lost(const Error& why, bool closed_by_peer) {
  const bool closed = closed_by_peer || end_reason_.has_value();
  const Error reason = end_reason_ ? *end_reason_ : describe(why);
  const bool stood_long = runtime().now() - up_since_ > kWorthCounting;
  failures_ = stood_long ? 0 : failures_ + 1;
  standing_.abort();
  forget_link();
  if (closed) intent_ = LinkIntent::dismissed;
  host_.sink().on_peer_lost(peer_, reason, closed);
  if (intent_ == LinkIntent::open && !up_) schedule_dial(/*first=*/false);
}

Error TcpLink::describe(const Error& why) const {
  Error error = why;
  const auto& names = host_.options().names;
  const bool named = peer_.value < names.size();
  error.worker = named ? names[peer_.value] : std::to_string(peer_.value);
  error.text = "connection to worker '" + error.worker + "' lost: " + why.text;
  return error;
}

// Making a link: our side.

void TcpLink::schedule_dial(bool first) {
  if (intent_ != LinkIntent::open || up_ || !address_) return;
  if (dial_timer_ || dialing_.token != 0) return;
  const TransportOptions& options = host_.options();
  const uint64_t key = mix(options.seed.value, host_.hello().worker.value) ^ peer_.value;
  Duration wait = first ? Duration::zero() : back_off(options.back_off, failures_, key);
  if (!dials()) wait += options.patience;
  if (wait == Duration::zero()) return dial();
  dial_timer_ = runtime().call_at(runtime().now() + wait, [this] {
    dial_timer_.reset();
    dial();
  });
}

void TcpLink::dial() {
  if (intent_ != LinkIntent::open || up_) return;
  arriving_.abort();  // half of a link; the other half would be told to retry
  dialing_.token = mix(host_.hello().incarnation.value, mix(peer_.value, ++attempts_)) | 1;
  hello_said_ = false;
  dial_deadline_ = runtime().call_at(runtime().now() + host_.options().handshake_timeout, [this] {
    dial_deadline_.reset();
    dial_failed();
  });
  for (auto& connection : dialing_.lanes) {
    Result<FileDescriptor> socket = begin_connect(*address_);
    if (!socket.ok()) return dial_failed();
    set_stream_options(socket.value().get(), host_.options().keep_alive);
    connection = Connection::make(host_.context(), std::move(socket).value(), *this, true);
    if (connection == nullptr) return dial_failed();
  }
}

void TcpLink::stop_dialing() {
  cancel(dial_timer_);
  cancel(dial_deadline_);
  dialing_.abort();
}

void TcpLink::dial_failed() {
  stop_dialing();
  ++failures_;
  schedule_dial(/*first=*/false);
}

Handshake TcpLink::say(HandshakeKind kind, size_t lane, uint64_t token) const {
  const Hello& self = host_.hello();
  const bool introduces = kind == HandshakeKind::hello || kind == HandshakeKind::welcome;
  return {.kind = kind,
          .lane = static_cast<Lane>(lane),
          .from = self.worker,
          .to = peer_,
          .incarnation = self.incarnation,
          .token = token,
          .last_token = last_token_,
          .text = !introduces ? std::string()
                  : lane == 0 ? self.greeting
                              : to_string(host_.reached_at())};
}

void TcpLink::take_text(Pair& pair, size_t lane, std::string text) {
  (lane == 0 ? pair.hello.greeting : pair.reached_at) = std::move(text);
}

void TcpLink::on_connected(Connection& connection) {
  const auto lane = dialing_.lane_of(connection);
  if (!lane) return connection.abort();
  hello_said_ = true;
  connection.writer().append_bytes(
      encode_handshake(say(HandshakeKind::hello, *lane, dialing_.token)));
  connection.expect_handshake();
  connection.flush(kSmallLaneBytesPerFlush);
}

void TcpLink::on_handshake(Connection& connection, Handshake handshake) {
  const auto lane = dialing_.lane_of(connection);
  if (!lane) return connection.abort();
  const bool fits = handshake.from == peer_ && handshake.to == host_.hello().worker &&
                    handshake.token == dialing_.token && index_of(handshake.lane) == *lane;
  if (!fits) return dial_failed();
  switch (handshake.kind) {
    case HandshakeKind::welcome:
      return on_welcome(*lane, std::move(handshake));
    case HandshakeKind::refusal:
      return refused(error_from_text(handshake.text));
    default:
      return dial_failed();
  }
}

void TcpLink::on_welcome(size_t lane, Handshake welcome) {
  Hello& hello = dialing_.hello;
  const bool second = dialing_.done[1 - lane];
  if (second && hello.incarnation != welcome.incarnation) return dial_failed();
  hello.worker = peer_;
  hello.incarnation = welcome.incarnation;
  take_text(dialing_, lane, std::move(welcome.text));
  dialing_.done[lane] = true;
  if (second) link_up(std::exchange(dialing_, Pair{}));
}

void TcpLink::refused(const Error& reason) {
  stop_dialing();
  intent_ = LinkIntent::dismissed;
  host_.sink().on_peer_lost(peer_, reason, /*closed_by_peer=*/true);
}

// Making a link: the peer's side.

void TcpLink::on_arrival(std::shared_ptr<Connection> connection, Handshake hello) {
  if (intent_ == LinkIntent::closed && (closed_to_.value == 0 || closed_to_ == hello.incarnation)) {
    closed_to_ = hello.incarnation;
    return answer(std::move(connection), hello, HandshakeKind::refusal, error_to_text(reason_));
  }
  if (intent_ == LinkIntent::none || must_give_way(hello))
    return answer(std::move(connection), hello, HandshakeKind::retry, {});
  if (arriving_.token != hello.token) arriving_.abort();
  const size_t lane = index_of(hello.lane);
  const bool mixed = arriving_.token != 0 && arriving_.hello.incarnation != hello.incarnation;
  if (mixed || arriving_.lanes[lane]) {
    connection->abort();
    return arriving_.abort();
  }
  connection->set_owner(*this);
  arriving_.lanes[lane] = std::move(connection);
  arriving_.token = hello.token;
  arriving_.hello.worker = peer_;
  arriving_.hello.incarnation = hello.incarnation;
  take_text(arriving_, lane, std::move(hello.text));
  if (!arriving_.complete()) return;
  for (size_t i = 0; i < 2; ++i)
    arriving_.lanes[i]->writer().append_bytes(
        encode_handshake(say(HandshakeKind::welcome, i, arriving_.token)));
  link_up(std::exchange(arriving_, Pair{}));
}

// Both connect at once: the link that the lower id makes is the one. The peer's token of our last
// link tells whether it has lost that link, or had not seen it yet when it began.
bool TcpLink::must_give_way(const Handshake& hello) const {
  if (!dials()) return false;
  if (up_)
    return standing_.hello.incarnation == hello.incarnation && hello.last_token != standing_.token;
  return dialing_.token != 0 && hello_said_;
}

void TcpLink::answer(std::shared_ptr<Connection> connection, const Handshake& hello,
                     HandshakeKind kind, std::string text) {
  Handshake record = say(kind, index_of(hello.lane), hello.token);
  record.text = std::move(text);
  connection->writer().append_bytes(encode_handshake(record));
  host_.see_off(std::move(connection));
}

void TcpLink::link_up(Pair pair) {
  stop_dialing();
  arriving_.abort();
  standing_.abort();
  forget_link();
  intent_ = LinkIntent::open;
  up_ = true;
  up_since_ = runtime().now();
  last_token_ = pair.token;
  last_incarnation_ = pair.hello.incarnation;
  const std::optional<Address> from = parse_address(pair.reached_at);
  if (from && from->port != 0) address_ = *from;
  standing_ = std::move(pair);
  standing_.done = {};
  for (const auto& connection : standing_.lanes) connection->set_owner(*this);
  host_.mark_dirty(*this);
  const auto lanes = standing_.lanes;
  host_.sink().on_peer_up(Hello(standing_.hello));
  if (!up_ || standing_.token != last_token_) return;
  for (size_t lane = 0; lane < 2; ++lane)
    if (!lanes[lane]->aborted()) lanes[lane]->expect_frames(static_cast<Lane>(lane));
}

}  // namespace rehearsal::real
