#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/base/node_strand.h"
#include "core/calls/hooks.h"
#include "core/session/session_options.h"
#include "core/wire/message.h"

namespace rehearsal {

class Sessions;
struct SendOptions;

// The parts that an OutgoingStream works with; all of them outlive the stream.
struct OutgoingStreamParts {
  const SessionOptions& options;
  NodeStrand& strand;
  Sessions& sessions;
  ForkHook* forks;
  RecordHook* records;
  std::shared_ptr<const DeviceMap> devices;  // for its values; null: there is no map
  // The first writer begins to wait for credit; none waits any more. On the strand.
  std::function<void(bool waits)> on_waiting;
};

// The callee's end of a stream: the values of one call's answer, in the order in which they were
// written. On the strand, unless said otherwise.
class OutgoingStream : public std::enable_shared_from_this<OutgoingStream> {
 public:
  OutgoingStream(OutgoingStreamParts parts, WorkerId to, const Call& call, std::string function);

  // Sends a value once the caller has given credit for it, and unless it is the stream's only one
  // that the caller has not acknowledged, no message to the caller waits for room. Off the strand;
  // parks. Throws RpcError.
  void write(Payload&& value);

  // The caller has room for so many values in all.
  void on_credit(uint64_t items);

  // Nothing more can be written: whoever writes gets `why`.
  void close(const Error& why);

  // For its values; null: its caller has no map for this worker. Any thread.
  [[nodiscard]] const DeviceMap* devices() const { return parts_.devices.get(); }

  [[nodiscard]] DeviceWay lend() const { return device_way(parts_.strand, to_); }

  // How many values were sent.
  [[nodiscard]] uint64_t items() const { return sent_; }

 private:
  // A value whose writer is parked until it is sent.
  struct Written {
    Payload value;
    std::optional<AutogradMetadata> autograd;
    WaitHandle writer;
    MaybeError* failed;  // on the writer's stack, for as long as it waits
  };

  void take(Written&& written);
  void send(Written&& written);
  void refuse(Written&& written, const Error& why);
  [[nodiscard]] SendOptions send_options(const Item& item);
  [[nodiscard]] bool may_send() const;
  void send_waiting();
  void on_acknowledged();

  const OutgoingStreamParts parts_;
  const WorkerId to_;
  const CallId call_;
  const std::optional<ContextName> context_;
  const std::string function_;
  uint64_t credit_;  // in all
  uint64_t sent_ = 0;
  uint64_t acknowledged_ = 0;  // of those; by a peer
  std::deque<Written> waiting_;
  MaybeError closed_;
};

}  // namespace rehearsal
