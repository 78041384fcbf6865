#pragma once

#include "core/base/checkpoints.h"
#include "core/base/trace.h"
#include "core/base/transport.h"
#include "record/recording_runtime.h"

namespace rehearsal::record {

// The other seams of a node that is recorded. Each hands everything on.

// Records the node's orders to its transport.
class RecordingTransport final : public Transport {
 public:
  RecordingTransport(Transport& transport, Recorder& recorder)
      : transport_(transport), recorder_(recorder) {}

  void open(WorkerId peer) override;
  void send(WorkerId peer, Frame frame) override;
  // These never come: a worker with devices is not recorded.
  void send_on(WorkerId peer) override { transport_.send_on(peer); }
  void break_link(WorkerId peer, const Error& why) override { transport_.break_link(peer, why); }
  void close(WorkerId peer, const Error& reason) override;
  [[nodiscard]] uint64_t queued_bytes(WorkerId peer) const override;
  void stop() override;

 private:
  Transport& transport_;
  Recorder& recorder_;
};

// Records its transport's reports to it.
class RecordingSink final : public FrameSink {
 public:
  RecordingSink(FrameSink& sink, RecordingRuntime& runtime) : sink_(sink), runtime_(runtime) {}

  Position position(WorkerId peer) const override { return sink_.position(peer); }
  void on_peer_up(const Hello& hello) override;
  void on_frame(WorkerId peer, Frame frame) override;
  void on_peer_lost(WorkerId peer, const Error& why, bool closed_by_peer) override;
  void on_drained(WorkerId peer) override;
  void on_refused(WorkerId peer, const Refusals& refusals) override;

 private:
  FrameSink& sink_;
  RecordingRuntime& runtime_;
};

// Records the checkpoints' answers to its stacks.
class RecordingCheckpoints final : public Checkpoints {
 public:
  RecordingCheckpoints(Checkpoints& checkpoints, const RecordingRuntime& runtime)
      : checkpoints_(checkpoints), runtime_(runtime) {}

  Status save(const std::string& name, const std::string& bytes) override;
  Result<std::optional<std::string>> load(const std::string& name) override;

 private:
  Checkpoints& checkpoints_;
  const RecordingRuntime& runtime_;
};

// Records its acts.
class RecordingTrace final : public Trace {
 public:
  RecordingTrace(Trace& trace, Recorder& recorder) : trace_(trace), recorder_(recorder) {}
  void on_event(const Event& event) override;

 private:
  Trace& trace_;
  Recorder& recorder_;
};

}  // namespace rehearsal::record
