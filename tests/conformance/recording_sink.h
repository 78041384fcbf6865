#pragma once

#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/transport.h"

namespace rehearsal::conformance {

// Notes what a transport reports. The strand writes, the test reads: hence the lock.
class RecordingSink final : public FrameSink {
 public:
  enum class What { up, frame, lost, drained, refused };
  struct Report {
    What what;
    WorkerId peer;
    Hello hello;
    Frame frame;
    Error why;
    bool closed = false;
    Refusals refusals;
  };

  // Called on the strand for each report, after it has been noted.
  void set_reaction(std::function<void(const Report&)> reaction) {
    reaction_ = std::move(reaction);
  }

  // The next links to any peer begin with it.
  void set_position(const Position& position) {
    const std::lock_guard lock(mutex_);
    position_ = position;
  }

  Position position(WorkerId) const override {
    const std::lock_guard lock(mutex_);
    return position_;
  }
  void on_peer_up(const Hello& hello) override {
    note({.what = What::up, .peer = hello.worker, .hello = hello});
  }
  void on_frame(WorkerId peer, Frame frame) override {
    note({.what = What::frame, .peer = peer, .frame = std::move(frame)});
  }
  void on_peer_lost(WorkerId peer, const Error& why, bool closed_by_peer) override {
    note({.what = What::lost, .peer = peer, .why = why, .closed = closed_by_peer});
  }
  void on_drained(WorkerId peer) override { note({.what = What::drained, .peer = peer}); }
  void on_refused(WorkerId peer, const Refusals& refusals) override {
    note({.what = What::refused, .peer = peer, .refusals = refusals});
  }

  [[nodiscard]] std::vector<Report> reports() const {
    const std::lock_guard lock(mutex_);
    return reports_;
  }
  [[nodiscard]] size_t count(What what) const {
    const std::lock_guard lock(mutex_);
    return static_cast<size_t>(
        std::count_if(reports_.begin(), reports_.end(),
                      [what](const Report& report) { return report.what == what; }));
  }
  [[nodiscard]] std::vector<Frame> frames() const {
    const std::lock_guard lock(mutex_);
    std::vector<Frame> frames;
    for (const Report& report : reports_)
      if (report.what == What::frame) frames.push_back(report.frame);
    return frames;
  }
  // Sequence numbers of the frames that arrived on one lane, in order.
  [[nodiscard]] std::vector<uint64_t> sequences(Lane lane) const {
    std::vector<uint64_t> numbers;
    for (const Frame& frame : frames())
      if (lane_of(frame) == lane) numbers.push_back(frame.header.sequence);
    return numbers;
  }
  // Whether the last report about the link's state was that it stands.
  [[nodiscard]] bool up() const {
    const std::lock_guard lock(mutex_);
    bool up = false;
    for (const Report& report : reports_) {
      if (report.what == What::up) up = true;
      if (report.what == What::lost) up = false;
    }
    return up;
  }
  [[nodiscard]] Report last(What what) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(reports_.rbegin(), reports_.rend(),
                                    [what](const Report& report) { return report.what == what; });
    return found == reports_.rend() ? Report{.what = what} : *found;
  }
  void clear() {
    const std::lock_guard lock(mutex_);
    reports_.clear();
  }

 private:
  void note(Report report) {
    {
      const std::lock_guard lock(mutex_);
      reports_.push_back(report);
    }
    if (reaction_) reaction_(report);
  }

  mutable std::mutex mutex_;
  std::vector<Report> reports_;
  Position position_;
  std::function<void(const Report&)> reaction_;
};

}  // namespace rehearsal::conformance
