// Our rows for a table of RPC stacks: latencies of calls between two processes over loopback TCP,
// one JSON object for each workload, with the fields that a driver of such a table collects:
// workload, stack, transport, cpus, p50_us, p99_us.
//
//   rehearsal_peer_rows --transport uv|… --seconds S [--pin]
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "tests/bench/server_process.h"

namespace rehearsal::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUpCalls = 200;

struct Settings {
  std::string transport = "uv";  // the peer's; ours is TCP
  double seconds = 1;
  bool pin = false;
};

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Calls `once` for the time given. Its latencies, sorted, in microseconds.
template <class F>
std::vector<double> measure(const Settings& settings, F once) {
  for (int i = 0; i < kWarmUpCalls; ++i) once();
  std::vector<double> latencies;
  const auto begin = Clock::now();
  while (microseconds_since(begin) < settings.seconds * 1e6) {
    const auto start = Clock::now();
    once();
    latencies.push_back(microseconds_since(start));
  }
  std::sort(latencies.begin(), latencies.end());
  return latencies;
}

void print_row(const Settings& settings, const std::string& workload,
               const std::vector<double>& latencies) {
  const auto at = [&](double share) {
    return latencies[static_cast<size_t>(share * static_cast<double>(latencies.size() - 1))];
  };
  const nlohmann::ordered_json row = {{"workload", workload},
                                      {"stack", "rehearsal"},
                                      {"transport", settings.transport},
                                      {"cpus", settings.pin ? "one" : "all"},
                                      {"p50_us", at(0.5)},
                                      {"p99_us", at(0.99)},
                                      {"min_us", latencies.front()},
                                      {"max_us", latencies.back()}};
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// A context, recorded calls one behind the other, the backward pass over them, the gradient, and
// the context's end.
void recorded_calls(const Worker& worker, const at::Tensor& leaf, int calls,
                    BackwardOptions options) {
  const AutogradContext context = worker.autograd_context();
  at::Tensor value = leaf;
  for (int call = 0; call < calls; ++call)
    value = context.rpc_sync<at::Tensor>("server", "aten::add.Tensor", value, leaf.detach(), 1);
  context.backward({value.sum()}, options);
  if (context.get_gradients().find(leaf).sum().item<double>() != 256)
    throw std::runtime_error("a wrong gradient");
}

// A hundred recorded calls under way at once, and one pass over all.
void many_recorded_calls(const Worker& worker, const at::Tensor& leaf) {
  const AutogradContext context = worker.autograd_context();
  std::vector<Future<at::Tensor>> calls;
  for (int call = 0; call < 100; ++call)
    calls.push_back(context.rpc_async("server", &echo_tensor, leaf));
  std::vector<at::Tensor> values;
  for (const auto& call : calls) values.push_back(call.wait());
  context.backward({at::stack(values).sum()});
}

// A value is created at the server, its owner has said so, it is fetched, and dropped.
void create_and_fetch(const Worker& worker, const at::Tensor& tensor) {
  const auto created = worker.remote("server", &echo_tensor, tensor);
  created.created().wait();
  (void)created.to_here();
}

void autograd_and_reference_rows(const Settings& settings, const Worker& worker) {
  const at::Tensor leaf = at::ones({256}).requires_grad_();
  for (const int hops : {1, 2, 4})
    print_row(settings, "autograd_" + std::to_string(hops) + "hop",
              measure(settings, [&] { recorded_calls(worker, leaf, hops, {}); }));
  print_row(settings, "autograd_1hop_fast",
            measure(settings, [&] { recorded_calls(worker, leaf, 1, {.mode = PassMode::fast}); }));
  print_row(settings, "autograd_100calls",
            measure(settings, [&] { many_recorded_calls(worker, leaf); }));
  print_row(settings, "rref", measure(settings, [&] { create_and_fetch(worker, leaf.detach()); }));
}

// The same work as the peer's: an echo of 64 bytes by a served function, an ATen operator on
// tensors of 1 KB, recorded calls with their pass, a reference.
int run(const Settings& settings) {
  const Status status = with_server([&](Worker& worker, real::RealNode&) {
    const at::Tensor small = at::ones({16});
    const at::Tensor tensor = at::ones({256});
    print_row(settings, "echo64",
              measure(settings, [&] { (void)worker.rpc_sync("server", &echo_tensor, small); }));
    print_row(settings, "add", measure(settings, [&] {
                (void)worker.rpc_sync<at::Tensor>("server", "aten::add.Tensor", tensor, tensor, 1);
              }));
    autograd_and_reference_rows(settings, worker);
  });
  if (!status.ok()) std::fprintf(stderr, "%s\n", to_string(status.error()).c_str());
  return status.ok() ? 0 : 1;
}

// Before any thread starts: the child and all threads inherit it.
void pin_to_first_cpu() {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  sched_setaffinity(0, sizeof first, &first);
}

}  // namespace
}  // namespace rehearsal::bench

int main(int argc, char** argv) {
  rehearsal::bench::Settings settings;
  CLI::App app("Latencies of calls over loopback TCP, as rows for a table");
  app.add_option("--transport", settings.transport, "what the table calls the peer's transport");
  app.add_option("--seconds", settings.seconds, "for each workload")->check(CLI::Range(0.01, 60.0));
  app.add_flag("--pin", settings.pin, "both processes on the first CPU");
  CLI11_PARSE(app, argc, argv);
  if (settings.pin) rehearsal::bench::pin_to_first_cpu();
  return rehearsal::bench::run(settings);
}
