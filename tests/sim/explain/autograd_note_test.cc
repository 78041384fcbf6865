// Messages and events of autograd are taken down with pass and autograd messages.
#include "sim/explain/autograd_note.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <set>

#include "core/api/autograd_context.h"
#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/explain/chronicle.h"

namespace rehearsal::sim {
namespace {

const AutogradContextId kContext{{{1}, {2, 3}, 4}};
const AutogradMessageId kOne{{{1}, {2, 3}, 5}};
const AutogradMessageId kOther{{{1}, {2, 3}, 6}};

PassName pass_of(PassMode mode) {
  PassName name;
  name.id = {.context = kContext, .epoch = 7, .starter_incarnation = {1}};
  name.starter = WorkerId{2};
  name.mode = mode;
  return name;
}

TEST(AutogradNote, SaysPassAndMessagesOfEachKind) {
  // Goal: every field, for each message that has any. Method: one message of each kind.
  const AutogradNote pass{.context = to_string(kContext), .epoch = 7, .starter = 2};
  const PassName smart = pass_of(PassMode::smart);
  const auto note = [](auto content) { return *autograd_note(Message{std::move(content)}); };
  AutogradNote about_one = pass;
  about_one.about = {to_string(kOne)};
  EXPECT_EQ(note(GradientsAnswered{smart, kOne}), about_one);
  AutogradNote fast = pass;
  fast.fast = true;
  EXPECT_EQ(note(MarksAnswered{pass_of(PassMode::fast)}), fast);
  AutogradNote recorded = about_one;
  recorded.carried = to_string(kOther);
  EXPECT_EQ(note(Gradients{smart, kOne, {}, AutogradMetadata{kContext, kOther, WorkerId{2}}}),
            recorded);
  AutogradNote about_two = about_one;
  about_two.about.push_back(to_string(kOther));
  EXPECT_EQ(note(Marks{smart, {{kOne, {0}}, {kOther, {0, 2}}}}), about_two);
  for (const auto& [wave, word] :
       {std::pair(PassWave::check, "check"), std::pair(PassWave::resume, "resume"),
        std::pair(PassWave::commit, "commit")}) {
    AutogradNote finish = pass;
    finish.wave = word;
    EXPECT_EQ(note(PassFinish{smart, wave}), finish);
  }
  EXPECT_EQ(note(PassFinished{smart}), pass);
  EXPECT_EQ(note(PassFailed{smart, {}}), pass);
  Call call;
  EXPECT_EQ(autograd_note(Message{call}), std::nullopt);
  call.autograd = AutogradMetadata{kContext, kOne, WorkerId{2}};
  AutogradNote carried;
  carried.context = to_string(kContext);
  carried.carried = to_string(kOne);
  EXPECT_EQ(note(call), carried);
  EXPECT_EQ(autograd_note(Message{Cancel{}}), std::nullopt);
}

TEST(AutogradNote, SortsMessagesByTheirNames) {
  EXPECT_EQ(pass_traffic(message_name(Message{Gradients{}}.type())), PassTraffic::gradients);
  EXPECT_EQ(pass_traffic(message_name(Message{GradientsAnswered{}}.type())),
            PassTraffic::gradients);
  EXPECT_EQ(pass_traffic(message_name(Message{Marks{}}.type())), PassTraffic::marks);
  EXPECT_EQ(pass_traffic(message_name(Message{MarksAnswered{}}.type())), PassTraffic::marks);
  EXPECT_EQ(pass_traffic(message_name(Message{PassFinish{}}.type())), PassTraffic::waves);
  EXPECT_EQ(pass_traffic(message_name(Message{PassFinished{}}.type())), PassTraffic::waves);
  EXPECT_EQ(pass_traffic(message_name(Message{PassFailed{}}.type())), PassTraffic::waves);
  EXPECT_EQ(pass_traffic(message_name(Message{Call{}}.type())), PassTraffic::none);
  EXPECT_EQ(pass_traffic(""), PassTraffic::none);
}

at::Tensor doubled(const at::Tensor& x) { return x.mul(2); }

TEST(AutogradNote, ARunTellsOfItsPassWhoStartedItAndWhichGradientsCame) {
  // Goal: notes join with what nodes tell. Method: one pass through one call, in the simulator.
  FunctionRegistry registry;
  registry.function("doubled", &doubled);
  Program program(registry);
  program.worker("ps").worker("trainer", [](Worker& worker) {
    AutogradContext context = worker.autograd_context();
    const at::Tensor w = at::ones({2}).requires_grad_();
    context.backward({context.rpc_sync("ps", &doubled, w).sum()});
  });
  History history;
  ClusterOptions options;
  options.history = &history;
  Cluster(Seed{1}, program, options).run();
  const Chronicle chronicle = chronicle_of(history);
  std::set<std::string> carried;
  std::set<std::string> given;
  std::multiset<std::string_view> pass;
  for (const Moment& moment : chronicle.moments) {
    const std::optional<AutogradNote>& note = moment.entry.autograd;
    if (!note) continue;
    if (!note->carried.empty()) carried.insert(note->carried);
    if (note->epoch == 0) continue;
    EXPECT_EQ(note->epoch, 1u);
    EXPECT_EQ(note->starter, 1u);
    pass.insert(name_of(moment));
    if (message_of(moment) == "Gradients" && name_of(moment) == "frame")
      given.insert(note->about.begin(), note->about.end());
  }
  EXPECT_EQ(carried.size(), 2u);
  EXPECT_EQ(given, carried);
  EXPECT_EQ(pass.count("pass_started"), 2u);
  EXPECT_EQ(pass.count("pass_ended"), 2u);
  EXPECT_EQ(pass.count("frame"), pass.count("frame_sent"));
}

}  // namespace
}  // namespace rehearsal::sim
