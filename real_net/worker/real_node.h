#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/node/node.h"
#include "observe/log/long_waits.h"
#include "observe/log/slow_executions.h"
#include "observe/log/slow_passes.h"
#include "observe/metrics.h"
#include "observe/traces.h"
#include "real_net/gloo/gloo_carriers.h"
#include "real_net/runtime/real_runtime.h"
#include "real_net/tcp/slab_pool.h"
#include "real_net/tcp/tcp_transport.h"
#include "real_net/worker/checkpoint_files.h"
#include "real_net/worker/metrics_server.h"
#include "record/recording_seams.h"

namespace rehearsal {
class Program;
}

namespace rehearsal::real {

struct RealNodeOptions {
  NodeOptions node;  // without `lending`, its devices lend as MachineLending says
  // Tensors on devices of fewer bytes go by the host; of a MachineLending.
  uint64_t lend_from = kLendFrom;
  RuntimeOptions runtime;      // its `devices` are `node`'s
  TransportOptions transport;  // `names` and `seed` are taken from `node`
  Address listen{.host = "127.0.0.1", .port = 0};
  std::string checkpoints;  // the folder of all workers' checkpoints; empty: none can be saved
  // Null: calls carry all that process groups do. `stop` is called before the node dies.
  GlooCarriers* carriers = nullptr;
  Trace* trace = nullptr;  // null: nothing is traced. Called on the strand; outlives the node
  Trace* log = nullptr;    // the same, but it is not told when: for what needs no clock
  // Looked at every second, on the strand; outlives the node. Null: nobody is.
  observe::SlowExecutions* slow = nullptr;
  // Looked at together with `slow`; may be null.
  observe::SlowPasses* slow_passes = nullptr;
  observe::LongWaits* long_waits = nullptr;
  std::optional<record::RecordOptions> record;  // empty: nothing is recorded
  // Where GET /metrics is answered (see metrics_server.h); empty: nowhere, and nothing is counted.
  std::optional<Address> metrics;
  // How long executions that have been told to end are waited for.
  Duration unwind_timeout = std::chrono::seconds(5);
};

// One node over real threads and TCP, with all that it runs on. Several may live in one process.
class RealNode {
 public:
  // Throws RpcError if an address cannot be listened on or the record cannot be written.
  RealNode(RealNodeOptions options, const Program& program);
  // REQUIRES: `run` was never called, or has returned and left no stuck executions.
  ~RealNode();
  RealNode(const RealNode&) = delete;
  RealNode& operator=(const RealNode&) = delete;

  // Where this node listens.
  [[nodiscard]] Address address() const { return transport_.address(); }
  // Where peers find it.
  [[nodiscard]] Address reached_at() const { return transport_.reached_at(); }
  // Where its metrics are answered, if they are.
  [[nodiscard]] std::optional<Address> metrics_address() const;
  // Where this node finds a peer. Before `run`, or any time later from any thread.
  void set_address(WorkerId peer, const Address& address);

  // The worker's whole life, on the calling thread: joins, runs the program's function, shuts down.
  // Returns why it failed, if so. Once.
  [[nodiscard]] Status run();

  // Ends the node at once; `run` returns with this error. Any thread.
  void abort(const Error& why);
  // The same, unless it has joined its group by then.
  void fail_join(const Error& why);

  // Calls `tell`, soon and on the strand, with what the node waits for while it joins or ends. Any
  // thread.
  void tell_waits(std::function<void(const std::string&)> tell);

  // Whether it has joined its group. Any thread.
  [[nodiscard]] bool joined() const { return course_.joined(); }

  // After a `run` that did not fail: whether the group has shut down with it, and it has not left
  // at once.
  [[nodiscard]] bool shut_down() const { return !node_.left_at_once(); }

  // After a `run` that failed: whether the program wants another life of this worker.
  [[nodiscard]] bool starts_again() const { return node_.starts_again(); }

  // After `run`: labels of executions that did not end although they were told to. They cannot be
  // stopped: the process has to be left by _Exit.
  [[nodiscard]] const std::vector<std::string>& stuck() const { return stuck_; }

  // For measurements and tests.
  [[nodiscard]] RealRuntime& runtime() { return *runtime_; }
  [[nodiscard]] TcpTransport& transport() { return transport_; }
  [[nodiscard]] Node& node() { return node_; }
  [[nodiscard]] const SlabPool& pool() const { return pool_; }

 private:
  // Notes that the worker has joined, and passes everything on.
  class Course final : public Trace {
   public:
    // Null: nobody else. Before the first event.
    void set_next(Trace* next) { next_ = next; }
    void on_event(const Event& event) override;
    [[nodiscard]] bool hears_notes() const override {
      return next_ != nullptr && next_->hears_notes();
    }
    [[nodiscard]] bool joined() const { return joined_; }

   private:
    Trace* next_ = nullptr;
    std::atomic<bool> joined_{false};
  };
  // Tells the traces also when it happened, and then the log.
  class Timed final : public Trace {
   public:
    Timed(const RealRuntime& runtime, observe::Traces traces, Trace* log)
        : runtime_(runtime), traces_(std::move(traces)), log_(log) {}
    void on_event(const Event& event) override;
    [[nodiscard]] bool hears_notes() const override {
      return traces_.hears_notes() || (log_ != nullptr && log_->hears_notes());
    }

   private:
    const RealRuntime& runtime_;
    observe::Traces traces_;
    Trace* const log_;
  };

  // The layers between the node and its seams if it is recorded.
  struct Recording {
    std::shared_ptr<record::RecordingRuntime> runtime;
    record::RecordingTransport transport;
    record::RecordingTrace trace;
    record::RecordingCheckpoints checkpoints;
    std::optional<record::RecordingSink> sink;
  };
  [[nodiscard]] std::unique_ptr<Timed> timed();
  [[nodiscard]] Course& trace();
  [[nodiscard]] std::unique_ptr<Recording> recording();
  [[nodiscard]] Node::Environment environment();
  void start_recording();
  [[nodiscard]] Status run_main();
  [[nodiscard]] observe::MetricsSnapshot snapshot() const;
  void abort_now(const Error& why);
  void look_for_slow();
  void leave_network();
  void wait_for_executions();
  void let_go();

  const RealNodeOptions options_;
  Course course_;
  SlabPool pool_;
  const std::shared_ptr<RealRuntime> runtime_;
  TcpTransport transport_;
  CheckpointFiles checkpoints_;
  const std::unique_ptr<observe::Metrics> metrics_;      // null: nothing is counted
  const std::unique_ptr<MetricsServer> metrics_server_;  // the same
  const std::unique_ptr<Timed> timed_;                   // null: nobody needs the time
  const std::unique_ptr<Recording> recording_;           // null: nothing is recorded
  Node node_;
  std::vector<std::string> stuck_;
};

}  // namespace rehearsal::real
