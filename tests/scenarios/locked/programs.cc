#include "tests/scenarios/locked/programs.h"

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"

// A loop with no table for the unwinder, as a linker's stubs have none.
asm(".text\n"
    "rehearsal_stub:\n"
    "  jmp rehearsal_stub\n");
extern "C" void rehearsal_stub();

namespace rehearsal::locked {
namespace {

// ---- locked -----------------------------------------------------------------

// The balance of worker "bank", which asks worker "log" before it changes.
std::mutex balance_mutex;
int64_t balance = 0;

int64_t permit(int64_t amount) { return amount; }

int64_t deposit(CallContext& context, int64_t amount) {
  const std::lock_guard lock(balance_mutex);
  balance += context.rpc_sync("log", &permit, amount);
  return balance;
}

int64_t read_balance() {
  const std::lock_guard lock(balance_mutex);
  return balance;
}

Program locked_program(const ScenarioRun& run) {
  FunctionRegistry registry;
  registry.function("permit", &permit);
  registry.function("deposit", &deposit).function("read_balance", &read_balance);
  const int64_t calls = run.options.integer("calls");
  Program program(std::move(registry));
  program.worker("bank", [](Worker&) {}).worker("log", [](Worker&) {});
  program.worker("saver", [calls](Worker& worker) {
    for (int64_t i = 0; i < calls; ++i) worker.rpc_sync("bank", &deposit, i);
  });
  program.worker("reader", [calls](Worker& worker) {
    for (int64_t i = 0; i < calls; ++i) worker.rpc_sync("bank", &read_balance);
  });
  return program;
}

// ---- broken -----------------------------------------------------------------

volatile int64_t zero = 0;
volatile bool goes_on = true;

int64_t overflow(int64_t depth) {
  volatile char page[4096] = {};
  page[depth % 4096] = 1;
  if (!goes_on) return depth;
  return overflow(depth + 1) + page[0];
}

int64_t collect() {
  std::string text;
  while (goes_on) {
    text += std::to_string(text.size());
    if (text.size() > 1000) text.clear();
  }
  return static_cast<int64_t>(text.size());
}

void refuse() { throw std::runtime_error("not like this"); }
void refuse_for_good() noexcept { refuse(); }

int64_t act(const std::string& how) {
  if (how == "loop")
    while (goes_on) {
    }
  if (how == "collect") return collect();
  if (how == "stub") rehearsal_stub();
  if (how == "segv") return *reinterpret_cast<volatile int64_t*>(zero);
  if (how == "overflow") return overflow(0);
  if (how == "fpe") return static_cast<int64_t>(how.size()) / zero;
  if (how == "abort") std::abort();
  if (how == "noexcept") refuse_for_good();
  if (how == "throw") throw std::runtime_error("not now");
  return 0;
}

Program broken_program(const ScenarioRun& run) {
  FunctionRegistry registry;
  registry.function("act", &act);
  const std::string how = run.options.text("how");
  Program program(std::move(registry));
  program.worker("ps", [how](Worker&) {
    if (how == "main") std::abort();
  });
  program.worker("client", [how](Worker& worker) { worker.rpc_sync("ps", &act, how); });
  return program;
}

// ---- retrying ---------------------------------------------------------------

int64_t one() { return 1; }

// Gets 50 values, or goes on for ever; a pause of zero is none.
void retry(Worker& worker, bool endless, Duration pause) {
  for (int64_t done = 0; endless || done < 50;) {
    try {
      done += worker.rpc_sync("ps", &one);
      if (!endless) worker.sleep(std::chrono::milliseconds(100));
    } catch (const RpcError&) {
      if (pause.count() > 0) worker.sleep(pause);
    }
  }
}

Program retrying_program(const ScenarioRun& run) {
  FunctionRegistry registry;
  registry.function("one", &one);
  const Duration pause = std::chrono::milliseconds(std::stoi(run.options.text("pause")));
  const bool endless = run.options.integer("endless") == 1;
  Program program(std::move(registry));
  program.worker("ps", [](Worker&) {});
  program.worker("trainer", [pause, endless](Worker& worker) { retry(worker, endless, pause); });
  return program;
}

}  // namespace

std::vector<Scenario> scenarios() {
  Scenario locked;
  locked.name = "locked";
  locked.summary = "a mutex is held across a call";
  locked.options.integer("calls", {20, 6, 1, 1000, "of each worker"});
  locked.program = locked_program;
  Scenario broken;
  broken.name = "broken";
  broken.summary = "a served function that breaks off the run";
  broken.options.choice("how", {{"nothing", "loop", "collect", "stub", "segv", "overflow", "fpe",
                                 "abort", "noexcept", "throw", "main"},
                                "what it does"});
  broken.program = broken_program;
  Scenario retrying;
  retrying.name = "retrying";
  retrying.summary = "a loop that tries again whatever fails";
  // The first is the one that takes the fewest tries: a failure is made small with it.
  retrying.options.choice("pause", {{"1000", "1", "0"}, "behind a failure, in milliseconds"})
      .integer("endless", {0, 0, 0, 1, "1: it also goes on when it succeeds"});
  retrying.program = retrying_program;
  return {locked, broken, retrying};
}

}  // namespace rehearsal::locked
