#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/base/frame.h"
#include "core/base/ids.h"
#include "core/base/time.h"
#include "core/base/transport.h"

// The contents of a record. A node's strand takes one input after another, and all that the node
// does follows from them and from the clock: so a record is the list of its inputs in the order in
// which the strand took them, with what was read meanwhile. Behind each input stands what the node
// did with it, as digests, to be compared by who replays it.
//
// The ways by which the outside reaches a node, and where they are in a record:
//
// - a frame; a link that stands, is lost or has drained; a connection that is refused:
//   FrameReceived; PeerUp, PeerLost, Drained; PeerRefused
// - a timer that fires: Fired
// - a stack (main, a function, a continuation) that enters: Posted, with its Source
// - whoever ends the node from outside: Aborted
// - the clock and what the transport is asked: on the strand Read; off it, in Posted::readings
// - whether a stack may park, and what its checkpoints say: Posted::readings
// - options, seed, names, incarnation, LibTorch's threads: RecordHeader
//
// A function's arguments and what calls return come by frames. Random numbers follow from the seed.
namespace rehearsal::record {

// The giver of a task to the strand. Executions count from 1 in the order in which the strand
// started them, timers in the order in which it set them, entries in the order of the record: the
// numbers are the same in a replay.
struct Source {
  enum class Kind : uint8_t {
    main,           // the worker's main
    execution,      // a function, a continuation, a backward walk
    strand,         // another task
    entry_closure,  // the closure of that entry's task, when it was destroyed
    timer_closure,  // the same of a timer
    stranger,       // a thread that the runtime does not know
  };
  Kind kind = Kind::stranger;
  uint64_t number = 0;
  auto operator<=>(const Source&) const = default;
};
[[nodiscard]] std::string to_string(const Source& source);

// One answer that a stack got from its runtime.
struct Reading {
  enum class Kind : uint8_t {
    now,
    may_not_park,
    saved,       // a checkpoint was saved
    loaded,      // a checkpoint was there; bytes: of it
    no_such,     // no checkpoint of that name was there
    disk_fails,  // a checkpoint could not be saved or loaded; bytes: why
    // It woke another stack by a primitive of the program's own, and not all that run here run on
    // one thread: in which order they came to it the record does not say.
    woke_beside_threads
  };
  Kind kind = Kind::now;
  int64_t nanoseconds = 0;  // of the clock
  std::string bytes;
};

// Inputs. Text and bytes lie in the record.
struct Posted {
  Source from;
  uint64_t code = 0;              // names the task; see code_names.h
  std::vector<Reading> readings;  // of its stack, since the last task it posted
};
struct FrameReceived {
  WorkerId peer;
  FrameHeader header;
  std::string_view envelope;
  bool has_body = false;
  struct Part {
    SegmentUse use = SegmentUse::host;
    std::string_view bytes;
  };
  std::vector<Part> segments;
};
struct PeerUp {
  WorkerId peer;
  Incarnation incarnation;
  std::string_view greeting;
  Position position;
};
struct PeerLost {
  WorkerId peer;
  Error why;
  bool closed_by_peer = false;
};
struct Drained {
  WorkerId peer;
};
struct PeerRefused {
  WorkerId peer;
  Refusals refusals;
};
struct Fired {
  uint64_t timer = 0;
};
struct Aborted {
  Error why;
};

// The strand's reading while it ran a task: the clock, once a task, or queued bytes.
struct Read {
  enum class Kind : uint8_t { now, queued_bytes };
  Kind kind = Kind::now;
  uint64_t value = 0;
};

// The node's reaction to the input before: a digest for each event, frame and order to the
// transport (see digest.h).
struct Outcome {
  std::vector<uint64_t> digests;
};

// The main has returned; without an error if the worker ended well.
struct Ended {
  std::optional<Error> failure;
};

using Item = std::variant<Posted, FrameReceived, PeerUp, PeerLost, Drained, Fired, Aborted, Read,
                          Outcome, Ended, PeerRefused>;

// The bytes of an item. Those of a frame's segments follow what `append_bytes` writes.
void append_bytes(const Posted& item, std::string& out);
void append_bytes(WorkerId peer, const Frame& frame, std::string& out);
void append_bytes(const Hello& hello, std::string& out);
void append_bytes(const PeerLost& item, std::string& out);
void append_bytes(const Drained& item, std::string& out);
void append_bytes(const PeerRefused& item, std::string& out);
void append_bytes(const Fired& item, std::string& out);
void append_bytes(const Aborted& item, std::string& out);
void append_bytes(const Read& item, std::string& out);
void append_bytes(const Outcome& item, std::string& out);
void append_bytes(const Ended& item, std::string& out);

// Every byte is checked; nothing if they are no item.
[[nodiscard]] std::optional<Item> item_of(std::string_view bytes);

}  // namespace rehearsal::record
