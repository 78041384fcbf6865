#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/groups/static_group.h"
#include "core/node/hello.h"
#include "core/session/session.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/recording_trace.h"
#include "tests/core/scripted_network.h"
#include "tests/core/test_runtime.h"

namespace rehearsal {

// One worker of a group: its group, and a node around it that is as busy as the test says.
class GroupMember final : public SessionListener {
 public:
  GroupMember(doubles::TestWorld& world, doubles::ScriptedNetwork& network, SessionOptions options,
              const std::string& functions)
      : options_(std::move(options)),
        greeting_(greeting_of(options_, functions)),
        runtime(std::make_shared<doubles::TestRuntime>(world)),
        strand(std::make_shared<NodeStrand>(runtime, runtime.get(), &trace, options_.self,
                                            greeting_.name, Seed{1})),
        deadlines(*strand),
        sessions(options_, *strand, network.end(options_.self.value), *codec_, *this),
        group(options_, *strand, sessions, deadlines, view_) {
    network.attach(options_.self.value, *runtime, sessions,
                   {options_.self, options_.incarnation, to_text(greeting_)});
    sessions.set_on_progress([this] { group.progressed(); });
    sessions.set_on_tick([this] { group.on_tick(); });
    sessions.set_on_link([this](WorkerId peer) { group.on_link(peer); });
  }
  ~GroupMember() override {
    runtime->post([this] {
      sessions.stop();
      deadlines.clear();
      strand->close({.kind = ErrorKind::node_stopped, .text = "ended"});
    });
    runtime->post([this] { strand->outlive_node(); });
  }

  void join(Duration timeout = std::chrono::seconds(100)) {
    runtime->post(
        [&] { group.join(timeout, [this](Status status) { joined.emplace(std::move(status)); }); });
  }
  void shut_down(Duration timeout = std::chrono::seconds(60)) {
    runtime->post([&] {
      group.shut_down(timeout, [this](Status status) { left.emplace(std::move(status)); });
    });
  }
  // Something that `quiet` depends on has changed.
  template <class F>
  void change(F body) {
    runtime->post([&] {
      body();
      group.progressed();
    });
  }
  // Sends what an honest worker would not send now.
  void say(uint32_t peer, Message message) {
    runtime->post(
        [&] { sessions.send(WorkerId{peer}, std::move(message), {.of_shutdown = true}); });
  }
  void fence(uint32_t peer) {
    runtime->post([&] {
      sessions.fence(
          WorkerId{peer},
          {.kind = ErrorKind::peer_lost, .text = "silent", .worker = options_.names[peer]});
    });
  }

  // SessionListener.
  void on_message(WorkerId from, Message&& message) override {
    if (const std::optional<Violation> violation = sessions.judge(from, message))
      return sessions.accuse(from, *violation);
    group.on_message(from, message);
    if (std::holds_alternative<Cancel>(message.content)) ++activity;  // Any other message.
    group.progressed();
  }
  void on_peer_joined(const Hello& hello) override {
    group.on_peer_joined(hello.worker, greeting_from_text(hello.greeting).value().life);
  }
  void on_peer_fenced(WorkerId peer, Incarnation, const Error& why) override {
    group.on_peer_fenced(peer, why);
  }
  Status check_hello(const Hello& hello) override {
    Result<Greeting> theirs = greeting_from_text(hello.greeting);
    if (!theirs.ok()) return theirs.error();
    return check_greeting(greeting_, theirs.value(), options_.names[hello.worker.value]);
  }
  bool may_have_left(WorkerId peer) const override { return group.may_have_left(peer); }
  void on_hello_refused(WorkerId peer, const Error& why) override {
    group.on_hello_refused(peer, why);
  }

 private:
  static Greeting greeting_of(const SessionOptions& options, const std::string& functions) {
    Greeting greeting = greeting_of_this_process(options.names[options.self.value],
                                                 options.names.size(), functions);
    greeting.life = options.life;
    return greeting;
  }

  // A node that is as busy as the test says.
  struct View final : NodeView {
    explicit View(GroupMember& of) : member(of) {}
    bool quiet(uint32_t phase) const override {
      return !member.busy && (phase == 0 || member.references == 0) &&
             member.sessions.all_acknowledged();
    }
    std::string left() const override { return member.busy ? "1 running function" : ""; }
    void release_references() override { ++member.releases; }
    void keep_references() override { ++member.keeps; }
    void refuse_calls() override { ++member.refusals; }
    uint64_t activity() const override { return member.activity; }
    void ask_nothing_more(WorkerId) override {}
    bool asked(WorkerId) const override { return false; }
    bool awaits(WorkerId) const override { return false; }
    bool holds_nothing() const override { return true; }
    GroupMember& member;
  };

  const SessionOptions options_;
  const Greeting greeting_;
  View view_{*this};
  const std::unique_ptr<Codec> codec_ = make_protobuf_codec();

 public:
  bool busy = false;
  int references = 0;
  int releases = 0;
  int keeps = 0;
  int refusals = 0;
  uint64_t activity = 0;
  std::optional<Status> joined;
  std::optional<Status> left;
  doubles::RecordingTrace trace;
  const std::shared_ptr<doubles::TestRuntime> runtime;
  const std::shared_ptr<NodeStrand> strand;
  Deadlines deadlines;
  Sessions sessions;
  StaticGroup group;
};

// Some workers that are to be one group. A sent frame lies in flight until the test delivers it.
class GroupFixture : public ::testing::Test {
 protected:
  explicit GroupFixture(std::vector<std::string> names = {"a", "b", "c"})
      : network(static_cast<uint32_t>(names.size())), names_(std::move(names)) {}

  std::unique_ptr<GroupMember> make(uint32_t worker, const std::string& functions = "f () -> int\n",
                                    uint32_t life = 0) {
    return std::make_unique<GroupMember>(
        world, network,
        SessionOptions{.self = {worker},
                       .incarnation = {100 * ++lives_ + worker},
                       .life = life,
                       .names = names_,
                       .peer_timeout = std::chrono::seconds(30),
                       .heartbeat = std::chrono::seconds(5),
                       .refusal_limit = std::chrono::milliseconds(1500),
                       .window_bytes = 1 << 20,
                       .window_frames = 1000,
                       .grouped = true,
                       .mutants = {}},
        functions);
  }
  void begin() {
    for (uint32_t worker = 0; worker < names_.size(); ++worker) members.push_back(make(worker));
  }
  // All join, and all is delivered.
  void join_all() {
    begin();
    for (const auto& member : members) member->join();
    network.connect_all();
    deliver_all();
    for (const auto& member : members) ASSERT_TRUE(member->joined && member->joined->ok());
  }
  void shut_down_all() {
    for (const auto& member : members) member->shut_down();
  }
  // Delivers everything, acknowledgements too; only short timers pass.
  void deliver_all() {
    for (int i = 0; i < 40; ++i) {
      network.deliver_all();
      world.advance(std::chrono::milliseconds(1));
    }
  }
  GroupMember& a() { return *members[0]; }
  GroupMember& b() { return *members[1]; }
  GroupMember& c() { return *members[2]; }

  doubles::TestWorld world;
  doubles::ScriptedNetwork network;
  std::vector<std::unique_ptr<GroupMember>> members;

 private:
  const std::vector<std::string> names_;
  uint64_t lives_ = 0;
};

// All have joined.
class ShutdownFixture : public GroupFixture {
 protected:
  using GroupFixture::GroupFixture;

  void SetUp() override { join_all(); }
  void pass(Duration time) {
    for (Duration passed{}; passed < time; passed += std::chrono::seconds(1)) {
      world.advance(std::chrono::seconds(1));
      network.deliver_all();
    }
  }
  void expect_all_left() {
    for (const auto& member : members) {
      ASSERT_TRUE(member->left.has_value())
          << member->strand->name() << " " << member->group.describe();
      EXPECT_TRUE(member->left->ok()) << member->left->error().text;
    }
  }
};

}  // namespace rehearsal
