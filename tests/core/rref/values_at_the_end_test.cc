#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "core/api/worker.h"
#include "sim/cluster.h"
#include "sim/gtest.h"

namespace rehearsal {
namespace {

using std::chrono::seconds;

struct Seen {
  bool destroyed = false;
  bool used = false;
  bool was_there = false;
};

struct Kept {
  explicit Kept(std::shared_ptr<Seen> its_seen) : seen(std::move(its_seen)) {}
  Kept(Kept&&) noexcept = default;
  Kept& operator=(Kept&&) = delete;
  ~Kept() {
    if (seen) seen->destroyed = true;
  }
  std::shared_ptr<Seen> seen;
};

// Uses the value once more when the node has ended.
void use_after_the_end(CallContext& call, const RRef<Kept>& reference) {
  const std::shared_ptr<Seen> seen = reference.local_value().seen;
  try {
    call.sleep(seconds(10));
  } catch (const RpcError&) {
    seen->used = true;
    seen->was_there = !seen->destroyed;
  }
}

TEST(ValuesAtTheEnd, StayForAStackThatUsesThem) {
  // Goal: a reference keeps its value for whoever has asked for it with `local_value`, though the
  // node ends meanwhile. Method: a function that sleeps while the main of its worker fails, and
  // looks whether the value is there when that wakes it.
  EXPECT_TRUE(sim::holds_for_seeds(20, [](Seed seed) {
    const auto seen = std::make_shared<Seen>();
    {
      FunctionRegistry registry;
      registry.function("use_after_the_end", &use_after_the_end);
      Program program(std::move(registry));
      program.worker("owner", [&](Worker& worker) {
        const RRef<Kept> kept = worker.rref(Kept(seen));
        const Future<Unit> used = worker.rpc_async("owner", &use_after_the_end, kept);
        worker.sleep(seconds(1));
        throw std::runtime_error("the main has failed");
      });
      static_cast<void>(sim::Cluster(seed, program, {.faults = sim::FaultLevel::mild}).try_run());
    }
    if (!seen->used) throw std::logic_error("nobody used the value");
    if (!seen->was_there) throw std::logic_error("the value died before its last use");
    if (!seen->destroyed) throw std::logic_error("the value was never destroyed");
  }));
}

}  // namespace
}  // namespace rehearsal
