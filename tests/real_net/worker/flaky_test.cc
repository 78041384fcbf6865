// Goal: connections that break after some bytes, again and again, cost time and no more. Method:
// two whole nodes over TCP, and between them proxies that reset.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "core/api/worker.h"
#include "tests/real_net/support/loopback_group.h"

namespace rehearsal::real {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kCalls = 40;

std::atomic<int64_t>& executed() {
  static std::atomic<int64_t> count{0};
  return count;
}
int64_t count_call(int64_t number) {
  ++executed();
  return number;
}
int64_t size_of(const at::Tensor& tensor) { return tensor.numel(); }

FunctionRegistry flaky_functions() {
  FunctionRegistry registry;
  registry.function("count_call", &count_call).function("size_of", &size_of);
  return registry;
}

// The bytes that the proxies have forwarded to 40 small calls at once and their answers, once the
// workers have met; `trouble` begins then.
uint64_t bytes_of_calls(const std::function<void(FaultProxy&)>& trouble) {
  executed() = 0;
  Program program(flaky_functions());
  LoopbackGroup* group = nullptr;
  uint64_t before = 0;
  const auto forwarded = [&group] {
    return group->proxy(0).forwarded_bytes() + group->proxy(1).forwarded_bytes();
  };
  program.worker("ps").worker("trainer", [&](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &count_call, int64_t{-1}), -1);
    before = forwarded();
    for (const uint32_t rank : {0u, 1u}) trouble(group->proxy(rank));
    std::vector<Future<int64_t>> calls;
    for (int64_t i = 0; i < kCalls; ++i) calls.push_back(worker.rpc_async("ps", &count_call, i));
    for (int64_t i = 0; i < kCalls; ++i) EXPECT_EQ(calls[static_cast<size_t>(i)].wait(), i);
  });
  GroupOptions options{.through_proxies = true};
  options.node.peer_timeout = seconds(10);  // so that a test that fails ends
  options.node.heartbeat = seconds(1);
  LoopbackGroup made(program, options);
  group = &made;
  for (const Status& end : made.run()) EXPECT_TRUE(end.ok()) << to_string(end.error());
  EXPECT_EQ(executed(), kCalls + 1);
  return forwarded() - before;
}

TEST(Flaky, AResetAfterEveryFewBytesCostsASmallMultipleOfTheBytes) {
  // The reset hits whatever connection carried the last of these bytes. The four handshakes of a
  // link have up to 700 bytes; resets that come faster may hit every one of them.
  const uint64_t undisturbed = bytes_of_calls([](FaultProxy&) {});
  for (const uint64_t bytes : {1'000, 2'000, 5'000, 20'000}) {
    const uint64_t sent =
        bytes_of_calls([bytes](FaultProxy& proxy) { proxy.set_reset_after(bytes); });
    EXPECT_LT(sent, 20 * undisturbed) << "a reset after every " << bytes << " bytes";
  }
}

TEST(Flaky, AConnectionThatLivesForOneMessageBringsOneForward) {
  // Each of the two connections of a link carries so many bytes, handshakes among them, no more.
  const uint64_t undisturbed = bytes_of_calls([](FaultProxy&) {});
  for (const uint64_t bytes : {600, 1'000, 5'000}) {
    const uint64_t sent = bytes_of_calls([bytes](FaultProxy& proxy) { proxy.set_life(bytes); });
    EXPECT_LT(sent, 20 * undisturbed) << "connections of " << bytes << " bytes";
  }
}

TEST(Flaky, AMessageThatNoConnectionCarriesEndsWithAnErrorThatGivesItsSize) {
  // A tensor of 400,000 bytes, over connections of 100,000: nothing can pass it.
  Program program(flaky_functions());
  std::string why;
  program.worker("ps").worker("trainer", [&why](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync("ps", &count_call, int64_t{1}), 1);
    try {
      (void)worker.rpc_sync("ps", &size_of, at::zeros({100'000}));
      ADD_FAILURE();
    } catch (const RpcError& error) {
      EXPECT_EQ(error.kind(), ErrorKind::peer_lost);
      why = error.error().text;
    }
  });
  GroupOptions options{.through_proxies = true};
  options.node.peer_timeout = seconds(3);
  options.node.heartbeat = milliseconds(100);
  options.node.shutdown_timeout = seconds(5);
  LoopbackGroup group(program, options);
  for (const uint32_t rank : {0u, 1u}) group.proxy(rank).set_life(100'000);
  (void)group.run();
  EXPECT_NE(why.find("largest message on its way had 400"), std::string::npos) << why;
}

}  // namespace
}  // namespace rehearsal::real
