#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "core/fibers/sanitizer.h"
#include "sim/world/message_fields.h"
#include "tests/core/authority/liar_group.h"

// One of three workers says something that is not true: each message of the protocol, each field of
// it, with values that cannot be, before its time, in time and when it is over. The two others go
// on, keep each other, and whoever refuses it names message and field.
namespace rehearsal {
namespace {

using liar::Group;
using liar::kNames;
using liar::kWorkers;
using liar::message_of;
using liar::Sent;
using sim::fields_of;
using sim::MessageField;

constexpr uint64_t kUnknown = 0x5eed'5eed'5eed'5eed;

// With a sanitizer, which makes each run twenty times as long, one message in sixteen.
#if defined(REHEARSAL_ADDRESS_SANITIZER)
constexpr uint64_t kEach = 16;
#else
constexpr uint64_t kEach = 1;
#endif

class AuthorityTable : public ::testing::TestWithParam<Group> {
 protected:
  const Group group_ = GetParam();
  const Program program_ = liar::program_of(group_);
  fibers::StackPool stacks_;

  // Runs the group; after so many steps the mad worker says `lie`.
  void run(uint64_t moment, WorkerId to, const Message* lie, const std::string& what) {
    std::vector<liar::Lie> lies;
    if (lie != nullptr) lies.push_back({moment, to, *lie});
    liar::Outcome outcome = liar::run(group_, program_, stacks_, lies);
    for (uint32_t id = 0; id < kWorkers; ++id) {
      if (WorkerId{id} == group_.mad) continue;
      const std::optional<Status>& honest = outcome.results[id];
      ASSERT_TRUE(honest) << what << ": '" << kNames[id] << "' does not end";
      if (honest->ok()) continue;
      const Error& error = honest->error();
      EXPECT_EQ(error.worker, kNames[group_.mad.value]) << what << ": " << to_string(error);
    }
    EXPECT_TRUE(outcome.fences_of_others.empty())
        << what << ": " << outcome.fences_of_others.front();
    if (lie != nullptr) judge_refusals(outcome.fences_of_mad, what);
    if (lie == nullptr) {
      sent_ = std::move(outcome.sent);
      steps_ = outcome.steps;
    }
  }

  // A refusal names the message and, unless it cannot be read, the field.
  void judge_refusals(const std::vector<std::string>& whys, const std::string& what) {
    const std::string message = what.substr(0, what.find_first_of(". "));
    bool refused = false;
    for (const std::string& why : whys) {
      if (why.starts_with("fenced by ")) continue;  // Its own node was told a lie's answer.
      const bool broken = why.find("broke the protocol: ") != std::string::npos;
      const bool malformed = why.find("malformed message: ") != std::string::npos;
      refused |= broken || malformed;
      if (broken)
        EXPECT_NE(why.find("broke the protocol: " + message), std::string::npos)
            << what << ": " << why;
    }
    refused_ += refused ? 1 : 0;
  }

  // Says `base` again, then with one field changed after the other.
  void say_each_field(const Sent& base, uint32_t type) {
    const auto fresh = [&] {
      return base.body == nullptr ? sim::empty_message(type) : message_of(*base.body);
    };
    Message counted = fresh();
    const std::string name(message_name(type));
    // Not before all have joined: until then the loss of one fails the group.
    const uint64_t first = sent_.front().step + 40;
    const std::vector<uint64_t> moments = {first, std::max(first, base.step), steps_ - steps_ / 8};
    for (const uint64_t moment : moments) say(fresh(), base.to, moment, name + " again");
    const size_t fields = fields_of(counted).size();
    for (size_t i = 0; i < fields; ++i)
      for (const uint64_t value :
           {uint64_t{0}, UINT64_MAX, uint64_t{kWorkers}, uint64_t{kWorkers + 1}, kUnknown}) {
        Message lie = fresh();
        std::vector<MessageField> list = fields_of(lie);
        const std::string what = list[i].name + " = " + std::to_string(value);
        list[i].set(value);
        if (const auto* marks = std::get_if<Marks>(&lie.content); marks && marks->marks.empty())
          continue;
        say(std::move(lie), base.to, moments[said_ % moments.size()], what);
      }
  }

  void say(const Message& lie, WorkerId to, uint64_t moment, const std::string& what) {
    if (++said_ % kEach != 0) return;
    ++tried_;
    SCOPED_TRACE(what);
    run(moment, to, &lie, what + " after " + std::to_string(moment) + " steps");
  }

  std::vector<Sent> sent_;
  uint64_t steps_ = 0;
  uint64_t said_ = 0;
  uint64_t tried_ = 0;
  uint64_t refused_ = 0;
};

TEST_P(AuthorityTable, NoFalseMessageEndsAnHonestWorkerOrPartsTwo) {
  run(0, {}, nullptr, "nobody lies");
  ASSERT_FALSE(sent_.empty());
  const WorkerId other{group_.mad.value == 0 ? 1u : 0u};
  for (uint32_t type = 1; type <= sim::kMessageTypes; ++type) {
    const auto base = std::find_if(sent_.begin(), sent_.end(), [type](const Sent& sent) {
      return message_of(*sent.body).type() == type;
    });
    say_each_field(base != sent_.end() ? *base : Sent{other, steps_ / 2, nullptr}, type);
  }
  std::cout << tried_ << " messages, of which " << refused_ << " were refused\n";
  EXPECT_GT(said_, 500u);
  EXPECT_GT(refused_, tried_ / 4);
}

INSTANTIATE_TEST_SUITE_P(Groups, AuthorityTable,
                         ::testing::Values(Group{WorkerId{0}}, Group{WorkerId{2}},
                                           Group{WorkerId{0}, true}, Group{WorkerId{2}, true}),
                         [](const auto& info) {
                           return kNames[info.param.mad.value] + "_is_mad" +
                                  (info.param.dynamic ? "_in_a_dynamic_group" : "");
                         });

}  // namespace
}  // namespace rehearsal
