#include "real_net/tcp/tcp_link.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::real {
namespace {

constexpr uint64_t kSmallLaneBytesPerFlush = uint64_t{1} << 20;
constexpr uint64_t kLargeLaneBytesPerFlush = 256 * 1024;

// A link that stood shorter and brought no message counts as one more failure: attempts to make it
// become rare.
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
  refusals_ = 0;
  places_ = place_ = tried_ = 0;
  schedule_dial(/*first=*/true);
}

// Using the link.

void TcpLink::send(const Frame& frame) {
  if (!up_) return;
  standing_.lanes[index_of(lane_of(frame))]->writer().append(frame);
  above_high_water_ |= queued_bytes() > host_.options().high_water_bytes;
  host_.mark_dirty(*this);
}

void TcpLink::send_on() {
  if (up_) host_.mark_dirty(*this);
}

void TcpLink::break_off(const Error& why) {
  if (up_) lost(why, /*closed_by_peer=*/false);
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
    carried_ |= frame.body != nullptr;
    peer_knows_us_ = true;
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
  drop_arriving();
  if (!up_) return;
  Pair ending = std::move(standing_);
  forget_link();
  for (auto& connection : ending.lanes) host_.see_off(std::move(connection));
}

// Everything is cut.
void TcpLink::abort() {
  intent_ = LinkIntent::none;
  stop_dialing();
  drop_arriving();
  standing_.abort();
  forget_link();
}

void TcpLink::forget_link() {
  const bool was_up = std::exchange(up_, false);
  above_high_water_ = false;
  standing_ = Pair{};
  end_reason_.reset();
  cancel(end_timer_);
  cancel(frame_timer_);
  if (was_up) host_.on_change(*this);
}

bool TcpLink::is_beside() const {
  return up_ && standing_.complete() && standing_.lanes[0]->stays_here();
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
    if (connection.refused()) return dial_refused();
    dial_failed();
  } else if (arriving_.lane_of(connection)) {
    arriving_.abort();
  }
}

void TcpLink::lost(const Error& why, bool closed_by_peer) {
  const bool closed = closed_by_peer || end_reason_.has_value();
  const Error reason = end_reason_ ? *end_reason_ : describe(why);
  const bool stood_long = runtime().now() - up_since_ > kWorthCounting;
  failures_ = stood_long || carried_ ? 0 : failures_ + 1;
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
  host_.look_up(peer_, *address_, [this, token = dialing_.token](const Result<Addresses>& found) {
    if (dialing_.token == token) connect_to(found);
  });
}

void TcpLink::connect_to(const Result<Addresses>& places) {
  places_ = places.ok() ? places.value().size() : 0;
  if (!places.ok()) {
    host_.context().note_shortage(places.error());
    return dial_failed();
  }
  place_ %= places_;
  for (auto& connection : dialing_.lanes) {
    Result<FileDescriptor> socket = begin_connect(places.value()[place_]);
    if (!socket.ok()) {
      host_.context().note_shortage(socket.error());
      return dial_failed();
    }
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

// A host may have several addresses, of either family: the attempt is over when none is left, or
// when somebody was reached. The next one begins with another address all the same.
bool TcpLink::tries_next_place() {
  const bool reached = std::exchange(hello_said_, false);
  stop_dialing();
  ++place_;
  if (!reached && ++tried_ < places_) {
    dial();
    return true;
  }
  tried_ = 0;
  return false;
}

void TcpLink::dial_failed() {
  if (tries_next_place()) return;
  ++failures_;
  refusals_ = 0;
  schedule_dial(/*first=*/false);
}

// Nobody listens there: if that goes on, the peer has ended.
void TcpLink::dial_refused() {
  if (tries_next_place()) return;
  ++failures_;
  if (refusals_++ == 0) refused_since_ = runtime().now();
  schedule_dial(/*first=*/false);
  host_.sink().on_refused(
      peer_, {refusals_, runtime().now() - refused_since_, address_ ? to_string(*address_) : ""});
}

Handshake TcpLink::say(HandshakeKind kind, size_t lane, uint64_t token) const {
  const Hello& self = host_.hello();
  // A link that is made again need not carry again who we are: it may not live for long.
  const bool known_by_welcome = last_token_ != 0 && arriving_.last_token == last_token_;
  const bool introduces = (kind == HandshakeKind::hello && !peer_knows_us_) ||
                          (kind == HandshakeKind::welcome && !known_by_welcome);
  return {.kind = kind,
          .lane = static_cast<Lane>(lane),
          .from = self.worker,
          .to = peer_,
          .incarnation = self.incarnation,
          .token = token,
          .last_token = last_token_,
          .run = run_hash(host_.options().run),
          .position = host_.sink().position(peer_),
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
  refusals_ = 0;
  hello_said_ = true;
  tried_ = 0;
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
  if (!fits || !host_.believes(connection, peer_)) return dial_failed();
  switch (handshake.kind) {
    case HandshakeKind::welcome:
      return on_welcome(*lane, std::move(handshake));
    case HandshakeKind::refusal:
      return refused(error_from_text(handshake.text));
    case HandshakeKind::retry:
      peer_knows_us_ = false;
      return dial_failed();
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
  if (means_what_it_said_before(welcome)) welcome.text = last_greeting_;
  if (lane == index_of(Lane::small)) hello.position = welcome.position;
  take_text(dialing_, lane, std::move(welcome.text));
  dialing_.done[lane] = true;
  if (!second) return;
  peer_knows_us_ = true;
  link_up(std::exchange(dialing_, Pair{}));
}

// Of the small lane: it has left out its greeting, which we know.
bool TcpLink::means_what_it_said_before(const Handshake& handshake) const {
  return handshake.lane == Lane::small && handshake.text.empty() &&
         handshake.incarnation == last_incarnation_;
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
  const bool relies_on_us = hello.last_token != 0 && hello.text.empty();
  if (intent_ == LinkIntent::none || must_give_way(hello) ||
      (relies_on_us && hello.incarnation != last_incarnation_))
    return answer(std::move(connection), hello, HandshakeKind::retry, {});
  refusals_ = 0;
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
  arriving_.last_token = hello.last_token;
  arriving_.hello.worker = peer_;
  arriving_.hello.incarnation = hello.incarnation;
  if (means_what_it_said_before(hello)) hello.text = last_greeting_;
  if (hello.lane == Lane::small) arriving_.hello.position = hello.position;
  take_text(arriving_, lane, std::move(hello.text));
  if (!arriving_.complete()) return wait_for_other_half();
  for (size_t i = 0; i < 2; ++i)
    arriving_.lanes[i]->writer().append_bytes(
        encode_handshake(say(HandshakeKind::welcome, i, arriving_.token)));
  link_up(std::exchange(arriving_, Pair{}));
}

// A peer that has made one connection and makes no other holds it for a while only.
void TcpLink::wait_for_other_half() {
  cancel(arriving_deadline_);
  arriving_deadline_ =
      runtime().call_at(runtime().now() + host_.options().handshake_timeout, [this] {
        arriving_deadline_.reset();
        arriving_.abort();
      });
}

void TcpLink::drop_arriving() {
  arriving_.abort();
  cancel(arriving_deadline_);
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
  host_.see_off_answer(std::move(connection));
}

void TcpLink::link_up(Pair pair) {
  stop_dialing();
  drop_arriving();
  standing_.abort();
  forget_link();
  intent_ = LinkIntent::open;
  up_ = true;
  carried_ = false;
  refusals_ = 0;
  up_since_ = runtime().now();
  last_token_ = pair.token;
  last_incarnation_ = pair.hello.incarnation;
  last_greeting_ = pair.hello.greeting;
  const std::optional<Address> from = parse_address(pair.reached_at);
  if (from && from->port != 0) address_ = *from;
  standing_ = std::move(pair);
  standing_.done = {};
  for (const auto& connection : standing_.lanes) connection->set_owner(*this);
  host_.on_change(*this);
  host_.mark_dirty(*this);
  const auto lanes = standing_.lanes;
  host_.sink().on_peer_up(Hello(standing_.hello));
  if (!up_ || standing_.token != last_token_) return;
  for (size_t lane = 0; lane < 2; ++lane)
    if (!lanes[lane]->aborted()) lanes[lane]->expect_frames(static_cast<Lane>(lane));
  unfinished_ = {};
  watch_frames();
}

// A frame that is not finished keeps memory. This process may have stood still itself: two looks
// must have found the same.
void TcpLink::watch_frames() {
  frame_timer_ = runtime().call_at(runtime().now() + host_.options().frame_timeout, [this] {
    frame_timer_.reset();
    for (size_t lane = 0; lane < 2; ++lane) {
      const uint64_t mark = standing_.lanes[lane]->unfinished_frame();
      if (std::exchange(unfinished_[lane], mark) != mark || mark == 0) continue;
      Error why;
      why.kind = ErrorKind::peer_lost;
      why.text = "a frame has begun and does not go on";
      return lost(why, false);
    }
    watch_frames();
  });
}

}  // namespace rehearsal::real
