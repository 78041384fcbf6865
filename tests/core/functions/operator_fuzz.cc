#include "tests/core/functions/operator_fuzz.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/functions/operator_call.h"
#include "core/functions/schema_arguments.h"
#include "tests/core/functions/guarded_memory.h"

namespace rehearsal {
namespace {

constexpr uint64_t kMemoryMax = 32 << 20;  // of one call

void add_bytes(const at::Tensor& tensor, std::string& bytes) {
  if (!tensor.defined()) return;
  const at::Tensor plain = (tensor.is_quantized() ? at::dequantize(tensor) : tensor)
                               .to_dense()
                               .resolve_conj()
                               .resolve_neg()
                               .contiguous();
  bytes.append(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
}

// Where the child is; its parent sees it, too.
struct Progress {
  size_t position;
  uint64_t seed;
};

struct Fuzz {
  const std::vector<FuzzCase>& cases;
  const FuzzOptions& options;
};

void report(int out, const std::string& line) { (void)!::write(out, line.data(), line.size()); }

void fuzz_one(const Fuzz& fuzz, const Progress& progress, GuardedMemory& memory, int out) {
  const FuzzCase& one = fuzz.cases[progress.position];
  const std::string seed = ", seed " + std::to_string(progress.seed) + "\n";
  std::array<std::string, 2> outcomes;
  const int64_t before = memory_peak();
  const size_t calls = fuzz.options.guarded ? 2 : 1;
  for (size_t i = 0; i < calls; ++i) {
    memory.fill_with(i == 0 ? 0x5a : 0x3c);
    at::manual_seed(1);
    ::alarm(5);
    outcomes[i] = outcome(one.name, one.arguments(progress.seed), fuzz.options.allowed);
  }
  if (calls == 2 && outcomes[0] != outcomes[1])
    report(out, one.name + " shows memory that nobody wrote" + seed);
  if (memory_peak() - before > 256 * 1024)
    report(out, one.name + " takes more memory than it may" + seed);
}

// Never returns into the test of its parent.
[[noreturn]] void run_child(const Fuzz& fuzz, Progress& progress, int out) noexcept {
  static GuardedMemory memory(2 * kMemoryMax);
  if (fuzz.options.guarded) {
    c10::SetCPUAllocator(&memory);
    at::globalContext().setUserEnabledMkldnn(false);
  }
  at::set_num_threads(1);
  if (::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(3);
  for (; progress.position < fuzz.cases.size(); ++progress.position, progress.seed = 0)
    for (; progress.seed < fuzz.options.draws; ++progress.seed)
      fuzz_one(fuzz, progress, memory, out);
  if (memory.refused() > 0) report(out, "too much was asked for at once\n");
  ::_exit(0);
}

std::string read_all(int in) {
  std::string all;
  std::array<char, 4096> read{};
  for (ssize_t got = 0; (got = ::read(in, read.data(), read.size())) > 0;)
    all.append(read.data(), static_cast<size_t>(got));
  return all;
}

// Goes on where the child has ended.
std::string fuzz_in_children(const Fuzz& fuzz, Progress& progress) {
  std::string findings;
  while (progress.position < fuzz.cases.size()) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return "no pipe";
    const pid_t child = ::fork();
    if (child == 0) run_child(fuzz, progress, ends[1]);
    ::close(ends[1]);
    findings += read_all(ends[0]);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    findings += fuzz.cases[progress.position].name + " ended the process by " +
                (WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                     : "status " + std::to_string(WEXITSTATUS(status))) +
                ", seed " + std::to_string(progress.seed) + "\n";
    ++progress.position;
    progress.seed = 0;
  }
  return findings;
}

}  // namespace

std::string outcome(const std::string& name, std::vector<c10::IValue> arguments,
                    const AllowedOperators& allowed) {
  std::string bytes;
  try {
    Payload payload;
    ValueWriter writer(payload);
    SchemaArguments given;
    given.positional = std::move(arguments);
    Value<SchemaArguments>::write(writer, given);
    const Returned returned = call_operator(name, payload, allowed, kMemoryMax);
    static_cast<c10::IValue*>(std::get<HeldValue>(returned).value.get())
        ->visit([&bytes](const c10::IValue& part) {
          if (part.isTensor()) add_bytes(part.toTensor(), bytes);
          return false;
        });
    return bytes;
  } catch (const std::exception& refused) {
    return std::string("refused: ") + std::string(refused.what()).substr(0, 120);
  }
}

std::string fuzz(const std::vector<FuzzCase>& cases, const FuzzOptions& options) {
  FuzzOptions asked_for = options;
  if (const char* const draws = std::getenv("REHEARSAL_OPERATOR_DRAWS"))
    asked_for.draws = std::stoull(draws);
  std::vector<FuzzCase> chosen = cases;
  if (const char* const part = std::getenv("REHEARSAL_OPERATOR_NAMES"))
    std::erase_if(chosen,
                  [part](const FuzzCase& one) { return one.name.find(part) == std::string::npos; });
  auto* const progress = static_cast<Progress*>(
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  new (progress) Progress{};
  const std::string findings = fuzz_in_children({chosen, asked_for}, *progress);
  ::munmap(progress, sizeof(Progress));
  return findings;
}

int64_t memory_peak() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

}  // namespace rehearsal
