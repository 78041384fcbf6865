#include "sim/world/mad_worker.h"

#include <utility>
#include <vector>

#include "core/base/hash.h"
#include "core/values/sent_tensor.h"
#include "core/wire/protobuf_codec.h"

namespace rehearsal::sim {
namespace {

constexpr uint64_t kContents = uint64_t{1} << 40;  // of lies
constexpr size_t kHeardMax = 8;                    // of each type
constexpr size_t kValuesMax = 32;                  // of each name
constexpr uint64_t kPatternBytesMax = 1 << 16;
constexpr uint64_t kChangesMax = 3;

// The part of a field's name behind the last dot: fields of one such name are of one kind.
std::string kind_of(const MessageField& field) {
  return field.name.substr(field.name.rfind('.') + 1);
}

Payload* payload_of(Message& message) {
  if (auto* call = std::get_if<Call>(&message.content)) return &call->arguments;
  if (auto* response = std::get_if<Response>(&message.content)) return &response->value;
  if (auto* item = std::get_if<Item>(&message.content)) return &item->value;
  if (auto* end = std::get_if<End>(&message.content)) return &end->value;
  if (auto* gradients = std::get_if<Gradients>(&message.content)) return &gradients->gradients;
  return nullptr;
}

// Whether it can be made into bytes, and named.
bool is_well_formed(const Message& message) {
  const auto* const marks = std::get_if<Marks>(&message.content);
  return marks == nullptr || !marks->marks.empty();
}

}  // namespace

// Numbers that follow from one.
class MadWorker::Draws {
 public:
  explicit Draws(uint64_t content) : content_(content) {}
  uint64_t any() { return mix(content_, ++count_); }
  uint64_t below(uint64_t n) { return any() % n; }

 private:
  const uint64_t content_;
  uint64_t count_ = 0;
};

MadWorker::MadWorker(WorkerId worker, uint64_t one_in, uint32_t workers,
                     net_fake::Decisions& decisions)
    : worker_(worker),
      one_in_(one_in),
      workers_(workers),
      decisions_(decisions),
      codec_(make_protobuf_codec()) {}

std::optional<Lie> MadWorker::lie_after(uint64_t event) {
  if (workers_ < 2) return std::nullopt;
  const net_fake::Key key{
      .kind = net_fake::DecisionKind::lie, .subject = {worker_, 0}, .number = event};
  const uint64_t content = decisions_.choose(key, kContents);
  if (content < kContents - kContents / one_in_) return std::nullopt;
  Draws draws(content);
  WorkerId to{static_cast<uint32_t>(draws.below(workers_ - 1))};
  if (to >= worker_) ++to.value;
  Message message = pattern(draws);
  for (uint64_t changes = draws.below(kChangesMax + 1); changes > 0; --changes)
    change(message, draws);
  if (!is_well_formed(message)) return std::nullopt;
  return Lie{to, std::move(message)};
}

// A tensor that is lent is lent again; at times by another number, or by another ticket.
std::vector<SentTensor> MadWorker::sent_again(const Payload& payload, Draws& draws) {
  std::vector<at::Tensor> tensors = payload.tensors;
  const DeviceTensors devices = payload.devices == nullptr ? DeviceTensors() : *payload.devices;
  for (size_t i = 0; i < devices.borrowed.size(); ++i)
    if (devices.borrowed[i] != nullptr) tensors[i].reset();
  DeviceCopies copies;  // None are needed: the others are on the CPU.
  std::vector<SentTensor> sent = sent_tensors(tensors, devices.places, copies);
  for (size_t i = 0; i < devices.borrowed.size(); ++i) {
    if (devices.borrowed[i] == nullptr) continue;
    Lent lent{.loan = devices.borrowed[i]->loan(), .ticket = devices.borrowed[i]->ticket()};
    if (draws.below(4) == 0) lent.loan = draws.below(16);
    if (draws.below(4) == 0) lent.ticket = std::to_string(draws.below(16));
    sent[i] = sent_as_loan(payload.tensors[i], lent);
    sent[i].entry.place = devices.places[i];
  }
  return sent;
}

// A worker that says goodbye to anybody is not mad for long: only what it has heard of that.
Message MadWorker::pattern(Draws& draws) const {
  const auto type = static_cast<uint32_t>(1 + draws.below(kMessageTypes));
  const auto& heard = heard_[type];
  const bool goodbye = message_name(type) == "Goodbye";
  if (heard.empty() || (!goodbye && draws.below(8) == 0)) return empty_message(goodbye ? 1 : type);
  Message message = codec_->decode(*heard[draws.below(heard.size())]).value();
  if (Payload* const payload = payload_of(message)) payload->sent = sent_again(*payload, draws);
  return message;
}

void MadWorker::change(Message& message, Draws& draws) const {
  const std::vector<MessageField> fields = fields_of(message);
  if (fields.empty()) return;
  const MessageField& field = fields[draws.below(fields.size())];
  const auto seen = values_.find(kind_of(field));
  switch (draws.below(seen == values_.end() ? 8 : 16)) {
    case 0:
      return field.set(0);
    case 1:
      return field.set(field.max);
    case 2:
      return field.set(workers_);
    case 3:
      return field.set(workers_ + 1);
    case 4:
      return field.set(field.get() + 1);
    case 5:
      return field.set(field.get() - 1);
    case 6:
      return field.set(draws.below(workers_ + 8));
    case 7:
      return field.set(draws.any());
    default:
      return field.set(seen->second[draws.below(seen->second.size())]);
  }
}

void MadWorker::overhear(const std::shared_ptr<const FrameBody>& body) {
  if (body->bytes() > kPatternBytesMax) return;
  Result<Message> message = codec_->decode(*body);
  if (!message.ok()) return;
  auto& heard = heard_[message.value().type()];
  heard.push_back(body);
  if (heard.size() > kHeardMax) heard.pop_front();
  for (const MessageField& field : fields_of(message.value())) {
    std::deque<uint64_t>& values = values_[kind_of(field)];
    values.push_back(field.get());
    if (values.size() > kValuesMax) values.pop_front();
  }
}

}  // namespace rehearsal::sim
