// The view that traces and LibTorch's profiler have of calls.
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "core/calls/profiler_range.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

int64_t doubled(int64_t number) { return 2 * number; }
int64_t fails() { throw std::runtime_error("on purpose"); }

class ObservedCallsTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("doubled", &doubled).function("fails", &fails);
    begin({.execution_limit = 0, .queue_limit = 0});
  }
};

class ObservedServedTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("doubled", &doubled).function("fails", &fails);
    begin();
  }
};

TEST_F(ObservedServedTest, EventsTellTheFormAndTheEndAtBothSides) {
  // Goal: whoever counts needs no other source. Method: one call of each form, one that fails.
  EXPECT_EQ(a().calls.rpc_sync("b", &doubled, 1), 2);
  EXPECT_EQ(a().calls.rpc_async("b", &doubled, 1).wait(), 2);
  const RRef<int64_t> rref = a().calls.remote("b", &doubled, 1);
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync("b", &fails); }).kind,
            ErrorKind::remote_exception);
  settle();
  const auto made = a().trace.all(EventKind::api_call);
  ASSERT_EQ(made.size(), 4u);
  const std::vector<CallForm> forms = {CallForm::rpc_sync, CallForm::rpc_async, CallForm::remote,
                                       CallForm::rpc_sync};
  const auto served = b().trace.all(EventKind::call_served);
  ASSERT_EQ(served.size(), 4u);
  const uint64_t failed = 1 + static_cast<uint64_t>(ErrorKind::remote_exception);
  for (size_t i = 0; i < made.size(); ++i) {
    EXPECT_EQ(made[i].event.digest, static_cast<uint64_t>(forms[i]));
    EXPECT_EQ(served[i].event.id, made[i].event.id);
    EXPECT_EQ(served[i].event.peer, WorkerId{0});
    EXPECT_EQ(served[i].event.number, i == 3 ? failed : 0u);
    EXPECT_EQ(served[i].text, i == 3 ? "fails" : "doubled");
  }
  EXPECT_EQ(a().trace.count(EventKind::call_completed), 3u);  // Nobody waits for a creation.
  const auto sent = a().trace.all(EventKind::frame_sent);
  const auto taken = b().trace.all(EventKind::frame);
  ASSERT_EQ(sent.size(), taken.size());
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i].event.bytes, taken[i].event.bytes);
    EXPECT_GT(sent[i].event.bytes, 0u);
  }
}

TEST_F(ObservedCallsTest, ACallThatIsRefusedIsServedWithAnError) {
  // Goal: what never starts ends all the same. Method: no room to execute, none to queue.
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync("b", &doubled, 1); }).kind,
            ErrorKind::overloaded);
  const auto served = b().trace.all(EventKind::call_served);
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].event.number, 1 + static_cast<uint64_t>(ErrorKind::overloaded));
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 0u);
}

TEST_F(ObservedServedTest, ACallToALostPeerCompletesToo) {
  // Goal: every call that was made completes. Method: the peer is fenced before.
  a().fence(1);
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync("b", &doubled, 1); }).kind,
            ErrorKind::peer_lost);
  const auto completed = a().trace.all(EventKind::call_completed);
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].event.number, 1 + static_cast<uint64_t>(ErrorKind::peer_lost));
  EXPECT_EQ(completed[0].event.peer, WorkerId{1});
}

// The ranges that have ended, in order.
std::vector<std::string>& ranges() {
  static std::vector<std::string> names;
  return names;
}

class ProfilerTest : public ObservedServedTest {
 protected:
  void SetUp() override {
    ObservedServedTest::SetUp();
    ranges().clear();
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction&)
                                       -> std::unique_ptr<at::ObserverContext> { return nullptr; },
                                   [](const at::RecordFunction& function, at::ObserverContext*) {
                                     ranges().emplace_back(function.name());
                                   })
            .scopes({at::RecordScope::USER_SCOPE}));
  }
  void TearDown() override {
    at::removeCallback(handle_);
    ObservedServedTest::TearDown();
  }

 private:
  at::CallbackHandle handle_ = 0;
};

TEST_F(ProfilerTest, CallsAndServedFunctionsAreRangesOfTheProfiler) {
  // Goal: PyTorch's names. Method: a global callback; a call of each form, and one that fails.
  EXPECT_EQ(a().calls.rpc_sync("b", &doubled, 1), 2);
  EXPECT_EQ(ranges(), (std::vector<std::string>{"doubled", "rpc_sync#doubled(a -> b)"}));
  ranges().clear();
  EXPECT_EQ(a().calls.rpc_async("b", &doubled, 1).wait(), 2);
  EXPECT_EQ(ranges(), (std::vector<std::string>{"rpc_async#doubled(a -> b)", "doubled"}));
  ranges().clear();
  const RRef<int64_t> rref = a().calls.remote("c", &doubled, 1);
  settle();
  EXPECT_EQ(ranges(), (std::vector<std::string>{"rpc_remote#doubled(a -> c)", "doubled"}));
  ranges().clear();
  EXPECT_EQ(error_of([&] { return a().calls.rpc_sync("b", &fails); }).kind,
            ErrorKind::remote_exception);
  EXPECT_EQ(ranges(), (std::vector<std::string>{"fails", "rpc_sync#fails(a -> b)"}));
}

TEST(ProfilerRange, ItsNameIsNotAskedForIfNobodyProfiles) {
  // Goal: it costs nothing then. Method: a name that counts.
  int asked = 0;
  {
    const ProfilerRange range([&asked] {
      ++asked;
      return std::string("range");
    });
  }
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace rehearsal
