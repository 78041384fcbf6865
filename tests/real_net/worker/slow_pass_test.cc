// A backward pass over TCP that takes long says in the log what it waits for.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

constexpr const char* kTold = " worker=trainer event=pass_waits ";

// The gradient of the result is ready when the starter of the pass has told what it waits for.
at::Tensor slowly(const std::string& log, const at::Tensor& input) {
  at::Tensor result = input * 2;
  result.register_hook([log](const at::Tensor& gradient) -> at::Tensor {
    while (read_whole_file(log).find(kTold) == std::string::npos) {
    }
    return gradient;
  });
  return result;
}

Status run_one(uint32_t rank, const std::string& log, const Program& program) {
  WorkerOptions options;
  options.placement = {.rank = rank, .world_size = 2, .rendezvous = "file://" + log + ".store"};
  options.environment = [](const std::string&) { return std::nullopt; };
  options.observe.slow_after = std::chrono::milliseconds(50);
  options.observe.log = "info";
  return run_worker(options, program);
}

TEST(SlowPass, SaysWhatItWaitsForWhileItGoesOn) {
  // Goal: context, epoch, starter, time and workers, at both workers of the pass. Method: the walk
  // of one goes on until the other has told; standard error goes to a file.
  const TemporaryFolder folder;
  const std::string log = folder.file("log");
  FunctionRegistry registry;
  registry.function("slowly", &slowly);
  Program program(registry);
  std::string context_id;
  program.worker("ps").worker("trainer", [&](Worker& worker) {
    AutogradContext context = worker.autograd_context();
    context_id = to_string(context.id());
    const at::Tensor w = at::ones({2}).requires_grad_();
    context.backward({context.rpc_sync("ps", &slowly, log, w).sum()});
  });
  const int before = dup(STDERR_FILENO);
  const int file = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  dup2(file, STDERR_FILENO);
  close(file);
  std::array<std::optional<Status>, 2> ends;
  {
    std::vector<std::thread> workers;
    for (const uint32_t rank : {0u, 1u})
      workers.emplace_back([&, rank] { ends[rank] = run_one(rank, log, program); });
    for (std::thread& worker : workers) worker.join();
  }
  dup2(before, STDERR_FILENO);
  close(before);
  const std::string told = read_whole_file(log);
  for (const auto& end : ends) EXPECT_TRUE(end->ok()) << end->error().text;
  EXPECT_NE(told.find(kTold + ("context=" + context_id) +
                      " epoch=1 starter=trainer for_seconds=0 waits=\"answers to 1 messages with "
                      "gradients and 0 with marks, exchanged with 'ps'"),
            std::string::npos)
      << told;
}

}  // namespace
}  // namespace rehearsal::real
