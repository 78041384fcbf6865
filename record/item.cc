#include "record/item.h"

#include "record/bytes.h"

namespace rehearsal::record {
namespace {

// The first byte of an item: its place in the variant.
template <class T, size_t I = 0>
constexpr char tag() {
  if constexpr (std::is_same_v<std::variant_alternative_t<I, Item>, T>)
    return static_cast<char>(I);
  else
    return tag<T, I + 1>();
}

constexpr uint64_t kSourceKinds = 6;

void put_error(std::string& out, const Error& error) {
  put_number(out, static_cast<uint64_t>(error.kind));
  put_text(out, error.text);
  put_text(out, error.worker);
  put_text(out, error.function);
  put_number(out, error.chain.size());
  for (const std::string& worker : error.chain) put_text(out, worker);
  put_text(out, error.type);
}

bool take_flag(ByteReader& in, bool& fits) {
  const uint64_t flag = in.number();
  fits = fits && flag <= 1;
  return flag == 1;
}

Error take_error(ByteReader& in, bool& fits) {
  Error error;
  const uint64_t kind = in.number();
  fits = fits && kind <= static_cast<uint64_t>(kLastErrorKind);
  error.kind = static_cast<ErrorKind>(kind);
  error.text = in.text();
  error.worker = in.text();
  error.function = in.text();
  for (uint64_t left = in.number(); left > 0 && !in.bad(); --left)
    error.chain.emplace_back(in.text());
  error.type = in.text();
  return error;
}

WorkerId take_worker(ByteReader& in, bool& fits) {
  const uint64_t number = in.number();
  fits = fits && number <= UINT32_MAX;
  return {static_cast<uint32_t>(number)};
}

bool has_bytes(Reading::Kind kind) {
  return kind == Reading::Kind::loaded || kind == Reading::Kind::disk_fails;
}

Posted take_posted(ByteReader& in, bool& fits) {
  Posted item;
  const uint64_t source = in.number();
  fits = fits && source % 8 < kSourceKinds;
  item.from = {static_cast<Source::Kind>(source % 8), source / 8};
  item.code = in.word();
  while (in.left() > 0 && !in.bad()) {
    const uint64_t kind = in.number();
    fits = fits && kind <= static_cast<uint64_t>(Reading::Kind::woke_beside_threads);
    Reading reading{static_cast<Reading::Kind>(kind), 0, {}};
    if (reading.kind == Reading::Kind::now) reading.nanoseconds = static_cast<int64_t>(in.word());
    if (has_bytes(reading.kind)) reading.bytes = in.text();
    item.readings.push_back(std::move(reading));
  }
  return item;
}

FrameReceived take_frame_received(ByteReader& in, bool& fits) {
  FrameReceived item;
  item.peer = take_worker(in, fits);
  const uint64_t kind = in.number();
  fits = fits && kind <= static_cast<uint64_t>(FrameKind::fenced);
  item.header.kind = static_cast<FrameKind>(kind);
  item.header.source = {in.word()};
  item.header.destination = {in.word()};
  item.header.sequence = in.number();
  item.header.acknowledged = in.number();
  for (uint64_t& received : item.header.received) received = in.number();
  item.header.on_large_lane = take_flag(in, fits);
  item.has_body = take_flag(in, fits);
  if (!item.has_body) return item;
  item.envelope = in.text();
  const uint64_t count = in.number();
  fits = fits && count <= kSegmentCountMax;
  std::vector<uint64_t> sizes;
  for (uint64_t i = 0; fits && i < count && !in.bad(); ++i) {
    const uint64_t use = in.number();
    fits = fits && use <= static_cast<uint64_t>(SegmentUse::device);
    item.segments.push_back({static_cast<SegmentUse>(use), {}});
    sizes.push_back(in.number());
  }
  for (size_t i = 0; i < sizes.size(); ++i) item.segments[i].bytes = in.take(sizes[i]);
  return item;
}

PeerUp take_peer_up(ByteReader& in, bool& fits) {
  const WorkerId peer = take_worker(in, fits);
  const Incarnation incarnation{in.word()};
  PeerUp item{.peer = peer, .incarnation = incarnation, .greeting = in.text(), .position = {}};
  item.position.source = {in.word()};
  item.position.acknowledged = in.number();
  for (uint64_t& received : item.position.received) received = in.number();
  return item;
}

PeerLost take_peer_lost(ByteReader& in, bool& fits) {
  const WorkerId peer = take_worker(in, fits);
  const bool closed = take_flag(in, fits);
  return {peer, take_error(in, fits), closed};
}

PeerRefused take_peer_refused(ByteReader& in, bool& fits) {
  PeerRefused item{take_worker(in, fits), {}};
  item.refusals.count = in.number();
  item.refusals.lasting = Duration(static_cast<int64_t>(in.word()));
  item.refusals.at = in.text();
  return item;
}

Read take_read(ByteReader& in, bool& fits) {
  const uint64_t kind = in.number();
  fits = fits && kind <= static_cast<uint64_t>(Read::Kind::queued_bytes);
  return {static_cast<Read::Kind>(kind), in.word()};
}

Outcome take_outcome(ByteReader& in) {
  Outcome item;
  item.digests.reserve(in.left() / sizeof(uint64_t));
  while (in.left() > 0 && !in.bad()) item.digests.push_back(in.word());
  return item;
}

Ended take_ended(ByteReader& in, bool& fits) {
  Ended item;
  if (take_flag(in, fits)) item.failure = take_error(in, fits);
  return item;
}

Item take_item(ByteReader& in, bool& fits) {
  const std::string_view first = in.take(1);
  const char kind = first.empty() ? char{-1} : first.front();
  if (kind == tag<Posted>()) return take_posted(in, fits);
  if (kind == tag<FrameReceived>()) return take_frame_received(in, fits);
  if (kind == tag<PeerUp>()) return take_peer_up(in, fits);
  if (kind == tag<PeerLost>()) return take_peer_lost(in, fits);
  if (kind == tag<Drained>()) return Drained{take_worker(in, fits)};
  if (kind == tag<PeerRefused>()) return take_peer_refused(in, fits);
  if (kind == tag<Fired>()) return Fired{in.number()};
  if (kind == tag<Aborted>()) return Aborted{take_error(in, fits)};
  if (kind == tag<Read>()) return take_read(in, fits);
  if (kind == tag<Outcome>()) return take_outcome(in);
  if (kind == tag<Ended>()) return take_ended(in, fits);
  fits = false;
  return {};
}

}  // namespace

std::string to_string(const Source& source) {
  switch (source.kind) {
    case Source::Kind::main:
      return "the main";
    case Source::Kind::execution:
      return "execution " + std::to_string(source.number);
    case Source::Kind::strand:
      return "the strand";
    case Source::Kind::entry_closure:
      return "what entry " + std::to_string(source.number) + " left behind";
    case Source::Kind::timer_closure:
      return "what timer " + std::to_string(source.number) + " left behind";
    case Source::Kind::stranger:
      break;
  }
  return "a thread of the program's own";
}

void append_bytes(const Posted& item, std::string& out) {
  out += tag<Posted>();
  put_number(out, item.from.number * 8 + static_cast<uint64_t>(item.from.kind));
  put_word(out, item.code);
  for (const Reading& reading : item.readings) {
    put_number(out, static_cast<uint64_t>(reading.kind));
    if (reading.kind == Reading::Kind::now)
      put_word(out, static_cast<uint64_t>(reading.nanoseconds));
    if (has_bytes(reading.kind)) put_text(out, reading.bytes);
  }
}

void append_bytes(WorkerId peer, const Frame& frame, std::string& out) {
  out += tag<FrameReceived>();
  put_number(out, peer.value);
  put_number(out, static_cast<uint64_t>(frame.header.kind));
  put_word(out, frame.header.source.value);
  put_word(out, frame.header.destination.value);
  put_number(out, frame.header.sequence);
  put_number(out, frame.header.acknowledged);
  for (const uint64_t received : frame.header.received) put_number(out, received);
  put_number(out, frame.header.on_large_lane ? 1 : 0);
  put_number(out, frame.body != nullptr ? 1 : 0);
  if (frame.body == nullptr) return;
  put_text(out, frame.body->envelope);
  put_number(out, frame.body->segments.size());
  for (const Segment& segment : frame.body->segments) {
    put_number(out, static_cast<uint64_t>(segment.use));
    put_number(out, segment.bytes);
  }
}

void append_bytes(const Hello& hello, std::string& out) {
  out += tag<PeerUp>();
  put_number(out, hello.worker.value);
  put_word(out, hello.incarnation.value);
  put_text(out, hello.greeting);
  put_word(out, hello.position.source.value);
  put_number(out, hello.position.acknowledged);
  for (const uint64_t received : hello.position.received) put_number(out, received);
}

void append_bytes(const PeerLost& item, std::string& out) {
  out += tag<PeerLost>();
  put_number(out, item.peer.value);
  put_number(out, item.closed_by_peer ? 1 : 0);
  put_error(out, item.why);
}

void append_bytes(const Drained& item, std::string& out) {
  out += tag<Drained>();
  put_number(out, item.peer.value);
}

void append_bytes(const PeerRefused& item, std::string& out) {
  out += tag<PeerRefused>();
  put_number(out, item.peer.value);
  put_number(out, item.refusals.count);
  put_word(out, static_cast<uint64_t>(item.refusals.lasting.count()));
  put_text(out, item.refusals.at);
}

void append_bytes(const Fired& item, std::string& out) {
  out += tag<Fired>();
  put_number(out, item.timer);
}

void append_bytes(const Aborted& item, std::string& out) {
  out += tag<Aborted>();
  put_error(out, item.why);
}

void append_bytes(const Read& item, std::string& out) {
  out += tag<Read>();
  put_number(out, static_cast<uint64_t>(item.kind));
  put_word(out, item.value);
}

void append_bytes(const Outcome& item, std::string& out) {
  out += tag<Outcome>();
  for (const uint64_t digest : item.digests) put_word(out, digest);
}

void append_bytes(const Ended& item, std::string& out) {
  out += tag<Ended>();
  put_number(out, item.failure ? 1 : 0);
  if (item.failure) put_error(out, *item.failure);
}

std::optional<Item> item_of(std::string_view bytes) {
  ByteReader in(bytes);
  bool fits = true;
  Item item = take_item(in, fits);
  if (!fits || !in.finished()) return std::nullopt;
  return item;
}

}  // namespace rehearsal::record
