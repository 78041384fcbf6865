#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
  int64_t step = 0;
  friend void describe(Refused& thrown, auto&& fields) { fields(thrown.step); }
};

int64_t refuse(int64_t step) {
  Refused thrown("not\nnow");
  thrown.step = step;
  throw thrown;
}
int64_t refuse_behind(CallContext& context, int64_t step) {
  return context.rpc_sync("ps", &refuse, step);
}

FunctionRegistry throwing_functions() {
  FunctionRegistry registry;
  registry.function("refuse", &refuse).function("refuse_behind", &refuse_behind);
  registry.exception<Refused>("Refused");
  return registry;
}

TEST(RegisteredExceptions, ArriveUnderHostileFaults) {
  // Goal: type, fields and chain, once for each call, whatever the network does.
  int64_t caught = 0;
  Program program(throwing_functions());
  program.worker("ps").worker("relay");
  program.worker("trainer", [&caught](Worker& worker) {
    for (int64_t step = 0; step < 20; ++step) {
      try {
        (void)worker.rpc_sync("relay", &refuse_behind, step);
      } catch (const Refused& thrown) {
        const Error* error = error_of(thrown);
        if (thrown.step != step || std::string(thrown.what()) != "not\nnow" || error == nullptr ||
            error->worker != "ps" || error->chain != std::vector<std::string>{"relay"})
          throw std::logic_error("another exception");
        ++caught;
      }
    }
  });
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    caught = 0;
    Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::hostile});
    cluster.run();
    EXPECT_EQ(caught, 20) << seed;
  }
}

}  // namespace
}  // namespace rehearsal::sim
