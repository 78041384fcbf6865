// How fast tensors go from a device of one process to one of another: a table of our calls beside
// PyTorch's TensorPipe agent, and beside what no RPC can beat, a copy within a process. All in one
// run, on one machine; the processes speak over loopback.
//
//   rehearsal_device_rows [--devices cpu|sim|cuda] [--bytes N] [--seconds S]
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "real_net/cuda_devices.h"
#include "sim/simulated_devices.h"
#include "tests/bench/device_rows/tensorpipe.h"
#include "tests/bench/server_process.h"

namespace rehearsal::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kWarmUpCalls = 3;

struct Settings {
  std::string devices = "cpu";
  int64_t bytes = int64_t{64} << 20;
  double seconds = 2;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Those of this process, made at the first call; none for "cpu". Fails without GPUs.
DevicesHere devices_here(const Settings& settings) {
  if (settings.devices == "cpu") return {};
  if (settings.devices == "cuda") return real::cuda_devices().or_throw();
  static sim::SimulatedDevices simulated({.count = 2, .for_all_threads = true});
  return simulated.here();
}

at::Tensor ones_on(const Settings& settings, c10::Device device) {
  return at::ones({settings.bytes / 4}).to(device);
}

c10::Device first_device(const DevicesHere& devices) {
  return devices.count == 0 ? c10::Device("cpu") : devices.at(0);
}
c10::Device last_device(const DevicesHere& devices) {
  return devices.count == 0 ? c10::Device("cpu") : devices.at(devices.count - 1);
}

// The median time of calls of `once`, in seconds.
template <class F>
double median(const Settings& settings, F once) {
  for (int i = 0; i < kWarmUpCalls; ++i) once();
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.empty() || seconds_since(begin) < settings.seconds) {
    const auto start = Clock::now();
    once();
    times.push_back(seconds_since(start));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

void print_row(const Settings& settings, const std::string& what, double seconds) {
  std::printf("%-52s %9.3f ms %8.2f GB/s\n", what.c_str(), seconds * 1e3,
              static_cast<double>(settings.bytes) / seconds / 1e9);
  std::fflush(stdout);
}

// All that the device has been given is done.
void wait_for(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return;
  const c10::impl::VirtualGuardImpl kind(tensor.device().type());
  kind.synchronizeStream(kind.getStream(tensor.device()));
}

void copies(const Settings& settings) {
  const DevicesHere devices = devices_here(settings);
  const at::Tensor from = ones_on(settings, first_device(devices));
  const at::Tensor to = ones_on(settings, last_device(devices));
  print_row(settings, "a copy within a process", median(settings, [&] {
              to.copy_(from, /*non_blocking=*/true);
              wait_for(to);
            }));
  if (devices.count == 0) return;
  const at::Tensor host = at::empty_like(from, from.options().device(at::kCPU).pinned_memory(true));
  print_row(settings, "the same by way of pinned memory of the host", median(settings, [&] {
              host.copy_(from, /*non_blocking=*/true);
              wait_for(from);
              to.copy_(host, /*non_blocking=*/true);
              wait_for(to);
            }));
}

bool ours(const Settings& settings, const std::string& what, uint64_t lend_from) {
  const Status status = with_server(
      [&](Worker& worker, real::RealNode&) {
        const at::Tensor tensor = ones_on(settings, first_device(devices_here(settings)));
        print_row(settings, what, median(settings, [&] {
                    const at::Tensor first = worker.rpc_sync("server", &bench::first_of, tensor);
                    if (first.item<float>() != 1) throw std::runtime_error("a wrong element");
                  }));
      },
      {.devices = [&] { return devices_here(settings); }, .lend_from = lend_from});
  if (!status.ok()) std::fprintf(stderr, "%s\n", to_string(status.error()).c_str());
  return status.ok();
}

bool theirs(const Settings& settings, const std::string& transport, const std::string& what) {
  const TensorPipeOptions options{.transport = transport,
                                  .devices = [&] { return devices_here(settings); }};
  return with_tensorpipe(options, [&](const Push& push) {
    const at::Tensor tensor = ones_on(settings, first_device(devices_here(settings)));
    print_row(settings, what, median(settings, [&] { push(tensor); }));
  });
}

// A process that has used GPUs cannot be forked, so each table's row has processes of its own.
bool in_another_process(const std::function<bool()>& body) {
  Peer other([&](Peer& parent) {
    try {
      parent.tell(body() ? 1 : 0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      parent.tell(0);
    }
  });
  return other.hear() == 1;
}

bool run(const Settings& settings) {
  std::printf("%lld bytes, devices: %s\n", static_cast<long long>(settings.bytes),
              settings.devices.c_str());
  std::fflush(stdout);
  const bool copied = in_another_process([&] {
    copies(settings);
    return true;
  });
  if (!copied || !in_another_process([&] { return ours(settings, "Rehearsal, TCP", UINT64_MAX); }))
    return false;
  if (settings.devices == "cuda" && !in_another_process([&] {
        return ours(settings, "the same, as it chooses", kLendFrom);
      }))
    return false;
  if (settings.devices == "sim") return true;  // which PyTorch's agent does not send
  return in_another_process(
             [&] { return theirs(settings, "uv", "PyTorch's TensorPipe agent, TCP"); }) &&
         in_another_process(
             [&] { return theirs(settings, "auto", "the same, as it chooses its transport"); });
}

}  // namespace
}  // namespace rehearsal::bench

int main(int argc, char** argv) {
  rehearsal::bench::Settings settings;
  CLI::App app("How fast tensors go from a device of one process to one of another");
  app.add_option("--devices", settings.devices, "cpu, sim (simulated) or cuda")
      ->check(CLI::IsMember({"cpu", "sim", "cuda"}));
  app.add_option("--bytes", settings.bytes, "of a tensor")->check(CLI::Range(4, 1 << 30));
  app.add_option("--seconds", settings.seconds, "for each row")->check(CLI::Range(0.0, 60.0));
  CLI11_PARSE(app, argc, argv);
  return rehearsal::bench::run(settings) ? 0 : 1;
}
