#include "scenarios/rref_fork/rref_fork.h"

#include <vector>

#include "core/node/call_context.h"
#include "core/node/worker.h"

namespace rehearsal {
namespace {

struct Parcel {
  explicit Parcel(int64_t content) : content(content) {}
  int64_t open() const { return content; }
  int64_t content;
};

constexpr int64_t kContent = 42;

// Whoever is given the reference lets go of it when it returns.
void hold(const RRef<Parcel>&) {}

int64_t look_inside(const RRef<Parcel>& parcel) { return parcel.rpc_sync(&Parcel::open); }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Parcel>("Parcel").constructor<int64_t>().method("open", &Parcel::open);
  registry.function("hold", &hold);
  registry.function("look_inside", &look_inside);
  return registry;
}

// What may go wrong when a worker was lost or taken for dead.
bool is_loss(ErrorKind kind) {
  return kind == ErrorKind::peer_lost || kind == ErrorKind::fenced ||
         kind == ErrorKind::rref_deleted;
}

bool is_loss(const RpcError& error) {
  return is_loss(error.kind()) || error.kind() == ErrorKind::remote_exception;
}

void create_and_pass_on(Worker& worker, int64_t forks, bool use) {
  RRef<Parcel> parcel = worker.remote<Parcel>(WorkerId{1}, kContent);
  const auto others = static_cast<int64_t>(worker.workers().size()) - 2;
  std::vector<Future<int64_t>> looks;
  std::vector<Future<Unit>> holds;
  for (int64_t fork = 0; fork < forks; ++fork) {
    const WorkerId to{static_cast<uint32_t>(2 + fork % others)};
    if (use)
      looks.push_back(worker.rpc_async(to, &look_inside, parcel));
    else
      holds.push_back(worker.rpc_async(to, &hold, parcel));
  }
  parcel = {};
  const auto settle = [](auto& future) {
    try {
      future.wait();
    } catch (const RpcError& error) {
      if (!is_loss(error)) throw;
    }
  };
  for (auto& look : looks) settle(look);
  for (auto& held : holds) settle(held);
}

Program rref_fork_program(const ScenarioRun& run) {
  Program program(functions());
  program.worker("creator",
                 [forks = run.options.integer("forks"), use = run.options.integer("use") != 0](
                     Worker& worker) { create_and_pass_on(worker, forks, use); });
  program.worker("owner");
  program.worker("user", Count{static_cast<uint32_t>(run.options.integer("workers")) - 2});
  return program;
}

}  // namespace

Scenario rref_fork_scenario() {
  Scenario scenario;
  scenario.name = "rref_fork";
  scenario.summary = "one reference, created, passed on and dropped; small enough for explore";
  scenario.options
      .integer("workers", {.full = 3, .tiny = 3, .min = 3, .max = 8, .meaning = "workers"})
      .integer("forks",
               {.full = 1, .tiny = 1, .min = 0, .max = 100, .meaning = "how often it is passed on"})
      .integer("use", {.full = 0,
                       .tiny = 0,
                       .min = 0,
                       .max = 1,
                       .meaning = "1: who is given the reference calls a method of it"})
      .integer("faults", {.full = 1,
                          .tiny = 1,
                          .min = 0,
                          .max = 2,
                          .meaning = "cuts, crashes and false suspicions in a run of explore"});
  scenario.program = rref_fork_program;
  return scenario;
}

}  // namespace rehearsal
