#include <algorithm>
#include <memory>

#include "core/wire/protobuf_codec.h"
#include "tests/core/authority/liar_group.h"
#include "tests/fuzz/target.h"

// A worker of three that says what the input holds, in any state of the group: the two others end,
// keep each other, and no error of theirs blames anybody else.
namespace rehearsal::fuzz {
namespace {

// One thing that is said: how many events later, to whom, and the bytes of the message, of which
// small segments take their zeros.
constexpr size_t kLiesMax = 24;
constexpr size_t kSegmentBytes = 64;

std::vector<liar::Lie> lies_of(Input& input, const liar::Group& group) {
  static const std::unique_ptr<Codec> codec = make_protobuf_codec();
  std::vector<liar::Lie> lies;
  uint64_t step = 0;
  while (input.left() > 0 && lies.size() < kLiesMax) {
    step += input.number(2) % 1024;
    const uint8_t how = input.byte();
    const WorkerId to{(group.mad.value + 1 + how % 2) % liar::kWorkers};
    FrameBody body;
    for (int left = (how >> 1) % 4; left > 0; --left) {
      auto memory = std::make_shared<std::vector<std::byte>>(kSegmentBytes);
      body.segments.push_back({memory, memory->data(), kSegmentBytes, {}});
    }
    body.envelope = input.text(input.number(2) % 2048);
    Result<Message> message = codec->decode(body);
    if (message.ok()) lies.push_back({step, to, liar::message_of(body)});
  }
  return lies;
}

const std::vector<liar::Group>& groups() {
  static const std::vector<liar::Group> all = {
      {WorkerId{0}}, {WorkerId{2}}, {WorkerId{0}, true}, {WorkerId{2}, true}};
  return all;
}

struct Stage {
  liar::Group group;
  Program program;
};

Stage& stage(size_t number) {
  static std::vector<Stage> all = [] {
    std::vector<Stage> made;
    for (const liar::Group& group : groups()) made.push_back({group, liar::program_of(group)});
    return made;
  }();
  return all[number % all.size()];
}

fibers::StackPool& stacks() {
  static fibers::StackPool pool;
  return pool;
}

// It is about the liar, or came through it, or is that the other honest one has ended, whose own
// error is about the liar: while a group forms the loss of one ends the others.
bool blames_liar(const liar::Outcome& outcome, const liar::Group& group, const Error& error) {
  const std::string& liar = liar::kNames[group.mad.value];
  const auto is_told = [&liar](const Error& told) {
    return told.worker == liar ||
           std::find(told.chain.begin(), told.chain.end(), liar) != told.chain.end();
  };
  if (is_told(error)) return true;
  for (uint32_t id = 0; id < liar::kWorkers; ++id) {
    const std::optional<Status>& other = outcome.results[id];
    if (error.worker != liar::kNames[id] || WorkerId{id} == group.mad || !other) continue;
    const std::string begins = "worker '" + error.worker + "' has ended: ";
    return !other->ok() && is_told(other->error()) && error.text == begins + other->error().text;
  }
  return false;
}

void speak(Bytes bytes) {
  Input input(bytes);
  const Stage& on = stage(input.byte());
  const std::vector<liar::Lie> lies = lies_of(input, on.group);
  if (lies.empty()) return;
  const liar::Outcome outcome = liar::run(on.group, on.program, stacks(), lies);
  for (uint32_t id = 0; id < liar::kWorkers; ++id) {
    if (WorkerId{id} == on.group.mad) continue;
    const std::optional<Status>& result = outcome.results[id];
    must(result.has_value(), "an honest worker ends");
    must(result->ok() || blames_liar(outcome, on.group, result->error()),
         "an error of an honest worker blames the liar" +
             (result->ok() ? "" : ", not " + to_string(result->error())));
  }
  for (const std::string& why : outcome.fences_of_others)
    must(false, "two honest workers keep each other, but: " + why);
}

void put(std::string& bytes, uint64_t number, size_t length) {
  bytes.append(reinterpret_cast<const char*>(&number), length);
}

// All that the worker says of its own, once more, some events later.
std::vector<std::string> first_sequences() {
  std::vector<std::string> inputs;
  for (size_t number = 0; number < groups().size(); ++number) {
    const Stage& on = stage(number);
    const liar::Outcome outcome = liar::run(on.group, on.program, stacks(), {});
    std::string input;
    uint64_t step = 0;
    size_t said = 0;
    for (const liar::Sent& sent : outcome.sent) {
      if (said % kLiesMax == 0) {
        if (said > 0) inputs.push_back(input);
        input.assign(1, static_cast<char>(number));
        step = 0;
      }
      ++said;
      const uint64_t behind = (sent.to.value + liar::kWorkers - on.group.mad.value - 1) % 2;
      put(input, std::min<uint64_t>(sent.step - step, 1023), 2);
      put(input, behind | std::min<size_t>(sent.body->segments.size(), 3) << 1, 1);
      put(input, sent.body->envelope.size(), 2);
      input += sent.body->envelope;
      step = sent.step;
    }
    inputs.push_back(input);
  }
  return inputs;
}

}  // namespace

Target node_target() {
  return {"node", "a sequence of messages to workers that live", &speak, &first_sequences};
}

}  // namespace rehearsal::fuzz
