#include <ATen/ops/ones.h>
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "real_net/auth/mac_records.h"
#include "tests/bench/server_process.h"

// The same calls between two processes on plain links, under TLS, and with MACs only, beside the
// floors of the last two: the cipher and the MAC alone, over the records that a link makes.
namespace rehearsal::real {
namespace {

void with_tls_server(benchmark::State& state,
                     const std::function<void(Worker&, RealNode&)>& caller) {
  const std::string secret = state.range(0) == 0 ? "" : "a secret for benchmarks";
  const Protection protection = state.range(0) == 2 ? Protection::mac : Protection::tls;
  if (const Status status =
          bench::with_server(caller, {.secret = secret, .protection = protection, .devices = {}});
      !status.ok())
    state.SkipWithError(to_string(status.error()).c_str());
}

// Its argument: 0 plain, 1 under TLS, 2 with MACs.
void TlsSmallCall(benchmark::State& state) {
  with_tls_server(state, [&](Worker& worker, RealNode&) {
    for (auto _ : state)
      benchmark::DoNotOptimize(worker.rpc_sync("server", &bench::add, int64_t{1}, int64_t{2}));
  });
}
BENCHMARK(TlsSmallCall)->DenseRange(0, 2)->UseRealTime();

// The second argument: bytes.
void TlsPush(benchmark::State& state) {
  with_tls_server(state, [&](Worker& worker, RealNode&) {
    const at::Tensor tensor = at::ones({state.range(1) / 4});
    for (auto _ : state)
      benchmark::DoNotOptimize(worker.rpc_sync("server", &bench::bytes_of, tensor));
    state.SetBytesProcessed(state.range(1) * state.iterations());
  });
}
BENCHMARK(TlsPush)->ArgsProduct({{0, 1, 2}, {16 << 20}})->UseRealTime();

// AES-128-GCM over records of 16 KiB, from one buffer into another, on one core.
void TlsCipherAlone(benchmark::State& state) {
  constexpr int kRecord = 16 * 1024;
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> cipher(EVP_CIPHER_CTX_new(),
                                                                               EVP_CIPHER_CTX_free);
  const std::array<unsigned char, 16> key{};
  std::array<unsigned char, 12> nonce{};
  std::vector<unsigned char> from(kRecord), to(kRecord + 16);
  if (EVP_EncryptInit_ex(cipher.get(), EVP_aes_128_gcm(), nullptr, key.data(), nonce.data()) != 1)
    std::abort();
  for (auto _ : state) {
    ++nonce[0];
    int bytes = 0;
    EVP_EncryptInit_ex(cipher.get(), nullptr, nullptr, nullptr, nonce.data());
    EVP_EncryptUpdate(cipher.get(), to.data(), &bytes, from.data(), kRecord);
    EVP_EncryptFinal_ex(cipher.get(), to.data() + bytes, &bytes);
    EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, 16, to.data() + kRecord);
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(int64_t{kRecord} * static_cast<int64_t>(state.iterations()));
}
BENCHMARK(TlsCipherAlone);

// GMAC over records of 16 KiB, with the copy that a writer makes, on one core.
void TlsMacAlone(benchmark::State& state) {
  MacRecords records({1}, {2});
  const std::vector<std::byte> from(MacRecords::kRecordBytes);
  std::string to;
  for (auto _ : state) {
    to.clear();
    records.write(from, to);
    benchmark::DoNotOptimize(to.data());
  }
  state.SetBytesProcessed(static_cast<int64_t>(from.size() * state.iterations()));
}
BENCHMARK(TlsMacAlone);

}  // namespace
}  // namespace rehearsal::real
