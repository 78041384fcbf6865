#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/explain/history.h"

namespace rehearsal::sim {

// One event of an explained run: an entry of its history, put in its place.
struct Moment {
  Entry entry;
  // Earlier moments without which this one would not be: first, if there is one, that of the same
  // worker just before it; then the sending of what it takes, the break that it hears of, ….
  std::vector<size_t> causes;
  std::optional<size_t> message;  // of Chronicle::messages: what is sent or taken here
  std::string tables;             // what the worker holds after it; empty: as before
};

// One transmission of a frame with a message. A frame that is resent is another one.
struct MessageTrip {
  size_t sent = 0;                // moment
  std::optional<size_t> arrived;  // moment; without: lost, or still on its way at the end
  std::optional<size_t> lost_at;  // the break that took it
};

// A history made ready to be told: what belongs together is joined, each moment has its causes, and
// each message its way. The happened-before relation (Lamport, CACM 1978) is the closure of causes.
struct Chronicle {
  std::vector<std::string> workers;
  std::vector<Moment> moments;
  std::vector<MessageTrip> messages;
  // The moment that an oracle objected to; of a main that failed, where it threw. None if what an
  // oracle found is how things are: a leak, a wait without an end.
  std::optional<size_t> failed_at;
  // Behind the last moment of the program itself, and of the failure: what follows to the end is
  // the shutdown only. None where the shutdown may be what failed.
  std::optional<size_t> shutdown_from;
};

[[nodiscard]] Chronicle chronicle_of(const History& history);

// "frame_sent", "frame_resent", "crash", …: what kind of moment it is, in one word.
[[nodiscard]] std::string_view name_of(const Moment& moment);

// "stream 1 of sim:0", as sim/device says it.
[[nodiscard]] std::string stream_name(const StreamNote& stream);

// "worker0", or "worker0.1" in its second life; "the cluster" if it is nobody's.
[[nodiscard]] std::string place_of(const Chronicle& chronicle, const Moment& moment);

// A sentence without its subject: "takes Call 12 from worker1".
[[nodiscard]] std::string text_of(const Chronicle& chronicle, const Moment& moment);

// "Call", "Response", …, if a message is sent or taken here, else empty.
[[nodiscard]] std::string_view message_of(const Moment& moment);

// How many messages the shutdown has.
[[nodiscard]] size_t shutdown_messages(const Chronicle& chronicle);

// The moments that happened before `last` (and it itself), as a flag for each moment up to it.
[[nodiscard]] std::vector<bool> causal_past(const Chronicle& chronicle, size_t last);

}  // namespace rehearsal::sim
