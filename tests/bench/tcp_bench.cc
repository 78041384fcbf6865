#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "tests/bench/server_process.h"

// Calls between two processes over loopback TCP, beside their floor: a round trip of 64 bytes by
// blocking reads and writes. Each benchmark forks its peer.
namespace rehearsal::real {
namespace {

using bench::add;
using bench::bytes_of;
using bench::echo_tensor;
using bench::Peer;

// The floor.

void read_all(int fd, char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t got = read(fd, bytes, count);
    if (got <= 0) std::_Exit(1);
    bytes += got;
    count -= static_cast<size_t>(got);
  }
}

FileDescriptor blocking_stream(FileDescriptor socket) {
  fcntl(socket.get(), F_SETFL, 0);
  set_stream_options(socket.get(), {});
  return socket;
}

void echo(Peer& parent) {
  FileDescriptor listening = blocking_stream(listen_on({"127.0.0.1", 0}).or_throw());
  parent.tell(local_address(listening).port);
  const FileDescriptor stream =
      blocking_stream(FileDescriptor(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC)));
  char bytes[64];
  for (;;) {
    read_all(stream.get(), bytes, sizeof bytes);
    if (write(stream.get(), bytes, sizeof bytes) != sizeof bytes) std::_Exit(0);
  }
}

void RawBlockingRoundTrip64Bytes(benchmark::State& state) {
  Peer peer(echo);
  const FileDescriptor stream(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(peer.hear());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(stream.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return state.SkipWithError("no connection");
  set_stream_options(stream.get(), {});
  char bytes[64] = {};
  for (auto _ : state) {
    if (write(stream.get(), bytes, sizeof bytes) != sizeof bytes) std::abort();
    read_all(stream.get(), bytes, sizeof bytes);
  }
}
BENCHMARK(RawBlockingRoundTrip64Bytes)->UseRealTime();

// Ours.

void with_server(benchmark::State& state, const std::function<void(Worker&, RealNode&)>& caller) {
  if (const Status status = bench::with_server(caller); !status.ok())
    state.SkipWithError(to_string(status.error()).c_str());
}

struct Counters {
  explicit Counters(RealNode& counted)
      : node(counted),
        reads(node.transport().census().reads),
        writes(node.transport().census().writes),
        polls(node.runtime().poller().wait_count()),
        wakes(node.runtime().polling_counts().wakes) {}
  void report(benchmark::State& state) const {
    const Counters now(node);
    const auto calls = static_cast<double>(state.iterations());
    state.counters["reads"] = static_cast<double>(now.reads - reads) / calls;
    state.counters["writes"] = static_cast<double>(now.writes - writes) / calls;
    state.counters["polls"] = static_cast<double>(now.polls - polls) / calls;
    state.counters["wakes"] = static_cast<double>(now.wakes - wakes) / calls;
  }
  RealNode& node;
  uint64_t reads;
  uint64_t writes;
  uint64_t polls;
  uint64_t wakes;
};

void TcpAtenAdd1KB(benchmark::State& state) {
  with_server(state, [&](Worker& worker, RealNode& node) {
    const at::Tensor tensor = at::ones({256});
    const Counters before(node);
    for (auto _ : state)
      benchmark::DoNotOptimize(
          worker.rpc_sync<at::Tensor>("server", "aten::add.Tensor", tensor, tensor, 1));
    before.report(state);
  });
}
BENCHMARK(TcpAtenAdd1KB)->UseRealTime();

void TcpInlineInteger(benchmark::State& state) {
  with_server(state, [&](Worker& worker, RealNode& node) {
    const Counters before(node);
    for (auto _ : state)
      benchmark::DoNotOptimize(worker.rpc_sync("server", &add, int64_t{1}, int64_t{2}));
    before.report(state);
  });
}
BENCHMARK(TcpInlineInteger)->UseRealTime();

void TcpPoolEcho(benchmark::State& state) {
  with_server(state, [&](Worker& worker, RealNode&) {
    const at::Tensor tensor = at::ones({state.range(0) / 4});
    for (auto _ : state) benchmark::DoNotOptimize(worker.rpc_sync("server", &echo_tensor, tensor));
  });
}
BENCHMARK(TcpPoolEcho)->Arg(64)->Arg(1 << 10)->UseRealTime();

void TcpPipelined64(benchmark::State& state) {
  with_server(state, [&](Worker& worker, RealNode&) {
    std::vector<Future<int64_t>> futures;
    for (auto _ : state) {
      futures.clear();
      for (int64_t i = 0; i < 64; ++i) futures.push_back(worker.rpc_async("server", &add, i, i));
      for (const auto& future : futures) benchmark::DoNotOptimize(future.wait());
    }
    state.SetItemsProcessed(64 * state.iterations());
  });
}
BENCHMARK(TcpPipelined64)->UseRealTime();

void TcpPush(benchmark::State& state) {
  with_server(state, [&](Worker& worker, RealNode&) {
    const at::Tensor tensor = at::ones({state.range(0) / 4});
    for (auto _ : state) benchmark::DoNotOptimize(worker.rpc_sync("server", &bytes_of, tensor));
    state.SetBytesProcessed(state.range(0) * state.iterations());
  });
}
BENCHMARK(TcpPush)->Arg(16 << 20)->Arg(64 << 20)->UseRealTime();

// A small call while 64 MB are on their way. The median is the link's, the tail the machine's.
void TcpSmallCallBehind64MB(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  with_server(state, [&](Worker& worker, RealNode&) {
    const at::Tensor tensor = at::ones({(64 << 20) / 4});
    const at::Tensor small = at::ones({16});
    worker.rpc_sync("server", &bytes_of, tensor);
    for (auto _ : state) {
      const auto push = worker.rpc_async("server", &bytes_of, tensor);
      const auto start = Clock::now();
      benchmark::DoNotOptimize(
          worker.rpc_sync<at::Tensor>("server", "aten::add.Tensor", small, small, 1));
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      state.SetIterationTime(seconds.back());
      (void)push.wait();
    }
  });
  if (seconds.empty()) return;
  std::sort(seconds.begin(), seconds.end());
  state.counters["p50_us"] = 1e6 * seconds[seconds.size() / 2];
  state.counters["p90_us"] = 1e6 * seconds[seconds.size() * 9 / 10];
}
BENCHMARK(TcpSmallCallBehind64MB)->Iterations(300)->UseManualTime()->Unit(benchmark::kMicrosecond);

// The latency of calls of 64 bytes when large values go to the same worker all the time, beside the
// same calls on an idle link.
class Latencies {
 public:
  template <class Call>
  void measure(Call call) {
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(call());
    const auto end = std::chrono::steady_clock::now();
    seconds_.push_back(std::chrono::duration<double>(end - start).count());
  }
  double percentile(size_t percent) {
    std::sort(seconds_.begin(), seconds_.end());
    return seconds_[seconds_.size() * percent / 100];
  }

 private:
  std::vector<double> seconds_;
};

void TcpSmallCallsBeside64MB(benchmark::State& state) {
  Latencies idle;
  Latencies busy;
  uint64_t pushes = 0;
  with_server(state, [&](Worker& worker, RealNode&) {
    const at::Tensor tensor = at::ones({(64 << 20) / 4});
    const at::Tensor small = at::ones({16});
    const auto call = [&] {
      return worker.rpc_sync<at::Tensor>("server", "aten::add.Tensor", small, small, 1);
    };
    for (int64_t i = 0; i < 1'000; ++i) benchmark::DoNotOptimize(call());
    for (int64_t i = 0; i < state.max_iterations; ++i) idle.measure(call);
    (void)worker.rpc_sync("server", &bytes_of, tensor);
    auto push = worker.rpc_async("server", &bytes_of, tensor);
    for (auto _ : state) {
      busy.measure(call);
      if (!push.ready()) continue;
      push = worker.rpc_async("server", &bytes_of, tensor);
      ++pushes;
    }
    (void)push.wait();
  });
  if (pushes == 0) return;
  for (const auto& [name, percent] : {std::pair("p50", 50), std::pair("p99", 99)}) {
    const auto at = static_cast<size_t>(percent);
    state.counters[std::string(name) + "_idle_us"] = 1e6 * idle.percentile(at);
    state.counters[std::string(name) + "_busy_us"] = 1e6 * busy.percentile(at);
    state.counters[std::string(name) + "_ratio"] = busy.percentile(at) / idle.percentile(at);
  }
  state.counters["pushes"] = static_cast<double>(pushes);
}
BENCHMARK(TcpSmallCallsBeside64MB)->Iterations(5'000)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rehearsal::real
