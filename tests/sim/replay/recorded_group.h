#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/world/event_lines.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/temporary_folder.h"

namespace rehearsal::sim {

// The events of a node, a line for each.
class EventTexts final : public Trace {
 public:
  void on_event(const Event& event) override {
    lines_.push_back(std::string(name_of(event.kind)) + " " + std::to_string(event.peer.value) +
                     " " + to_string(event.id) + " " + std::to_string(event.number) + " " +
                     std::to_string(event.digest) + " " + std::string(event.text));
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

// All workers of a program over TCP in this process, recorded; then each of them again, alone.
class RecordedGroup {
 public:
  RecordedGroup(const Program& program, real::GroupOptions options)
      : program_(program), events_(program.names().size()) {
    options.record_folder = folder_.path().string();
    for (EventTexts& events : events_) options.traces.push_back(&events);
    group_ = std::make_unique<real::LoopbackGroup>(program, options);
  }

  [[nodiscard]] real::LoopbackGroup& group() { return *group_; }
  // Then the nodes are gone …
  std::vector<Status> run() {
    std::vector<Status> ends = run_only();
    group_.reset();
    return ends;
  }
  // … or stay, for other threads that still look at them.
  std::vector<Status> run_only() { return group_->run(); }

  [[nodiscard]] std::string file(uint32_t rank) const {
    return folder_.file(program_.names()[rank] + ".record");
  }
  [[nodiscard]] const std::vector<std::string>& events(uint32_t rank) const {
    return events_[rank].lines();
  }

  // Replays a worker and expects that it does what it did.
  ReplayReport replay_alike(uint32_t rank) const {
    const auto record = record::read_record(file(rank)).or_throw();
    EXPECT_EQ(refusal(*record), std::nullopt);
    EXPECT_EQ(refusal(*record, program_), std::nullopt);
    EventTexts again;
    const ReplayReport report = replay(*record, program_, {.trace = &again});
    EXPECT_FALSE(report.divergence.has_value())
        << "worker " << rank << " entry " << report.divergence->entry << " ("
        << report.divergence->input << "): " << report.divergence->text;
    EXPECT_EQ(again.lines().size(), events(rank).size());
    EXPECT_EQ(again.lines(), events(rank)) << "worker " << rank;
    return report;
  }

 private:
  const Program& program_;
  const TemporaryFolder folder_;
  std::vector<EventTexts> events_;
  std::unique_ptr<real::LoopbackGroup> group_;
};

}  // namespace rehearsal::sim
