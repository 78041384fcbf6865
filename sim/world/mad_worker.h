#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/codec.h"
#include "core/base/transport.h"
#include "core/wire/message.h"
#include "net_fake/decisions.h"
#include "sim/world/message_fields.h"

namespace rehearsal::sim {

// A message that is not true, and who is told it.
struct Lie {
  WorkerId to;
  Message message;
};

// Hears what a worker sends and what it is sent.
class Eavesdropper {
 public:
  virtual ~Eavesdropper() = default;
  virtual void overhear(const std::shared_ptr<const FrameBody>& body) = 0;
};

// A worker of the run that says, between what its node says, well-formed messages which are not
// true. Each is one that it has heard or said before, or an empty one, of which some fields are
// changed: to nothing, to the greatest, to numbers about the number of workers, to what such a
// field was elsewhere, or to any number. One decision says whether there is one before an event of
// the worker, and all about it.
class MadWorker final : public Eavesdropper {
 public:
  MadWorker(WorkerId worker, uint64_t one_in, uint32_t workers, net_fake::Decisions& decisions);

  [[nodiscard]] WorkerId worker() const { return worker_; }

  // After its event with this number.
  [[nodiscard]] std::optional<Lie> lie_after(uint64_t event);

  void overhear(const std::shared_ptr<const FrameBody>& body) override;

 private:
  class Draws;
  [[nodiscard]] Message pattern(Draws& draws) const;
  [[nodiscard]] static std::vector<SentTensor> sent_again(const Payload& payload, Draws& draws);
  void change(Message& message, Draws& draws) const;

  const WorkerId worker_;
  const uint64_t one_in_;
  const uint32_t workers_;
  net_fake::Decisions& decisions_;
  const std::unique_ptr<Codec> codec_;
  // The latest of each type, and the values that fields of each last name had in them.
  std::array<std::deque<std::shared_ptr<const FrameBody>>, kMessageTypes + 1> heard_;
  std::map<std::string, std::deque<uint64_t>> values_;
};

// A transport that somebody listens to.
class TappedTransport final : public Transport {
 public:
  // `listener`: null: nobody.
  TappedTransport(Transport& transport, Eavesdropper* listener)
      : transport_(transport), listener_(listener) {}

  void open(WorkerId peer) override { transport_.open(peer); }
  void send(WorkerId peer, Frame frame) override {
    if (listener_ != nullptr && frame.body != nullptr) listener_->overhear(frame.body);
    transport_.send(peer, std::move(frame));
  }
  void send_on(WorkerId peer) override { transport_.send_on(peer); }
  void break_link(WorkerId peer, const Error& why) override { transport_.break_link(peer, why); }
  void close(WorkerId peer, const Error& reason) override { transport_.close(peer, reason); }
  [[nodiscard]] uint64_t queued_bytes(WorkerId peer) const override {
    return transport_.queued_bytes(peer);
  }
  void stop() override { transport_.stop(); }

 private:
  Transport& transport_;
  Eavesdropper* const listener_;
};

}  // namespace rehearsal::sim
