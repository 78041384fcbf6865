// Histories made by hand.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/explain/history.h"

namespace rehearsal::sim {

inline constexpr uint32_t kCall = 1;      // the type number of Call
inline constexpr uint32_t kResponse = 2;  // of Response
// Of the messages of a backward pass.
inline constexpr uint32_t kGradients = 13;
inline constexpr uint32_t kGradientsAnswered = 14;
inline constexpr uint32_t kPassFinish = 15;
inline constexpr uint32_t kPassFinished = 16;
inline constexpr uint32_t kMarks = 26;
inline constexpr uint32_t kMarksAnswered = 27;

class HandMade {
 public:
  explicit HandMade(const std::vector<std::string>& workers) { history.begin(workers); }

  HandMade& at(int64_t microseconds) {
    now_ = Instant{std::chrono::microseconds(microseconds)};
    return *this;
  }
  HandMade& add(Entry entry) {
    entry.when = now_;
    history.add(std::move(entry));
    return *this;
  }
  HandMade& event(EventKind kind, uint32_t worker, const std::string& id = {},
                  const std::string& text = {}) {
    return add({.event = kind, .worker = worker, .id = id, .text = text});
  }
  // A node sends a frame for the first time, and it begins to travel.
  HandMade& send(uint32_t from, uint32_t to, uint64_t number, const std::string& id = {},
                 uint32_t type = kCall) {
    add({.event = EventKind::frame_sent,
         .worker = from,
         .peer = to,
         .id = id,
         .message_type = type,
         .number = number});
    return travel(from, to, number, 0, type);
  }
  HandMade& travel(uint32_t from, uint32_t to, uint64_t number, uint64_t attempt,
                   uint32_t type = kCall, std::optional<AutogradNote> note = {}) {
    return add({.kind = EntryKind::sent,
                .worker = from,
                .peer = to,
                .message_type = type,
                .number = number,
                .attempt = attempt,
                .bytes = 8,
                .detail = type == kCall ? "add(3)" : "",
                .autograd = std::move(note)});
  }
  // One that belongs to autograd.
  HandMade& send_noted(uint32_t from, uint32_t to, uint64_t number, uint32_t type,
                       const AutogradNote& note) {
    add({.event = EventKind::frame_sent,
         .worker = from,
         .peer = to,
         .message_type = type,
         .number = number});
    return travel(from, to, number, 0, type, note);
  }
  HandMade& take(uint32_t to, uint32_t from, uint64_t number, const std::string& id = {},
                 uint32_t type = kCall, EventKind what = EventKind::frame) {
    add({.kind = EntryKind::arrived, .worker = to, .peer = from, .number = number});
    return add({.event = what,
                .worker = to,
                .peer = from,
                .id = id,
                .message_type = what == EventKind::frame ? type : 0,
                .text = what == EventKind::frame ? "" : "it arrived before"});
  }

  History history;

 private:
  Instant now_{};
};

}  // namespace rehearsal::sim
