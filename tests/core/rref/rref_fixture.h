#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/wire/protobuf_codec.h"
#include "tests/core/call_node.h"

namespace rehearsal {

class Counter;

// The state that the functions below share with the test.
struct Stage {
  int alive = 0;                                           // Counters
  std::map<std::string, std::vector<RRef<Counter>>> kept;  // by worker
  std::vector<std::string> log;
  std::function<void()> on_entered;  // called by a slow method before it waits
};
extern Stage* stage;

// A value that lives at its owner.
class Counter {
 public:
  explicit Counter(int64_t start) : value_(start) { ++stage->alive; }
  ~Counter() { --stage->alive; }
  Counter(const Counter&) = delete;

  int64_t add(int64_t by) { return value_ += by; }
  int64_t get() const { return value_; }
  // Reads, waits for `other`, and writes: a lost update unless it is alone in between.
  int64_t add_slowly(CallContext& context, const std::string& other, int64_t by);
  int64_t enter_twice(CallContext& context, const RRef<Counter>& self);
  // Adds one so many times, and tells each result.
  void count(StreamWriter<int64_t>& out, int64_t times);

 private:
  int64_t value_;
};

// A value with references inside.
struct Bundle {
  std::optional<RRef<Counter>> maybe;
  std::vector<RRef<Counter>> list;
  std::map<std::string, RRef<Counter>> named;
  friend void describe(Bundle& bundle, auto&& fields) {
    fields(bundle.maybe, bundle.list, bundle.named);
  }
};

// Functions that all workers have.
int64_t keep(CallContext& context, const RRef<Counter>& rref);
int64_t look(CallContext& context, const RRef<Counter>& rref);
int64_t keep_two(CallContext& context, const RRef<Counter>& first, const RRef<Counter>& second);
int64_t keep_bundle(CallContext& context, const Bundle& bundle);
RRef<Counter> give(CallContext& context);
Bundle give_bundle(CallContext& context);
void give_all(CallContext& context, StreamWriter<RRef<Counter>>& out);
RRef<Counter> own(CallContext& context, int64_t start);
int64_t forget(CallContext& context);
int64_t answer(int64_t number);
int64_t fail(int64_t number);
std::unique_ptr<Counter> unsendable(int64_t start);
FunctionRegistry rref_functions();

// Workers a, b and c, all linked. Nothing is delivered but what the test delivers.
class RRefFixture : public ::testing::Test {
 protected:
  RRefFixture() { stage = &stage_; }
  ~RRefFixture() override {
    for (const auto& node : nodes) node->end();
    stage_.kept.clear();
    nodes.clear();
    EXPECT_EQ(stage_.alive, 0);
    stage = nullptr;
  }

  void begin(uint32_t workers = 3);
  // A new life of a worker whose former one is over, or has crashed: nobody was told.
  void restart(uint32_t worker);

  doubles::CallNode& a() { return *nodes[0]; }
  doubles::CallNode& b() { return *nodes[1]; }
  doubles::CallNode& c() { return *nodes[2]; }

  // The name of an item in flight, such as "a>b Call".
  [[nodiscard]] std::string text_of(const doubles::ScriptedNetwork::InFlight& item) const;
  // All that is in flight. Acknowledgements aside.
  [[nodiscard]] std::vector<std::string> in_flight() const;
  // Delivers the first in flight of this text and runs what it starts.
  void deliver(const std::string& text);
  // Takes it out: it is delayed until `put_back`.
  [[nodiscard]] doubles::ScriptedNetwork::InFlight hold(const std::string& text);
  void put_back(doubles::ScriptedNetwork::InFlight item) { network.put(std::move(item)); }
  // Delivers all there is, and what comes of it.
  void deliver_all();
  // Lets the test's own code wait.
  void deliver_while_waiting() {
    world.set_idle([this] { return network.deliver_first(); });
  }

  // Every table of every node is empty, and no value lives.
  void expect_nothing_left();
  void check_invariants();

  template <class F>
  static Error error_of(F body) {
    try {
      (void)body();
    } catch (const RpcError& thrown) {
      return thrown.error();
    }
    ADD_FAILURE() << "nothing was thrown";
    return {};
  }

  Mutants mutants;
  uint64_t window_frames = 1000;
  PeerLimits limits;
  Stage stage_;
  doubles::TestWorld world;
  doubles::ScriptedNetwork network{3};
  std::vector<std::unique_ptr<doubles::CallNode>> nodes;

 private:
  std::unique_ptr<doubles::CallNode> make(uint32_t worker);

  uint32_t workers_ = 0;
  uint64_t lives_ = 0;
  const FunctionRegistry registry_ = rref_functions();
  const std::unique_ptr<Codec> codec_ = make_protobuf_codec();
};

}  // namespace rehearsal
