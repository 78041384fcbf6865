#include "scenarios/rref_fork/rref_fork.h"

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/worker.h"
#include "core/base/frame.h"

namespace rehearsal {
namespace {

constexpr WorkerId kCreator{0};
constexpr WorkerId kOwner{1};
constexpr uint32_t kFirstUser = 2;
constexpr int64_t kContent = 42;

// The uses of a reference by its receiver.
enum class Use : int64_t { drop, call, fetch, pass_back, keep, drop_and_keep };

struct Parcel {
  Parcel() = default;
  explicit Parcel(int64_t content) : content(content) {}
  Parcel(int64_t content, std::string wrapping) : content(content), wrapping(std::move(wrapping)) {}
  int64_t open() const { return content; }
  int64_t content = 0;
  std::string wrapping;  // not sent when it is fetched
  friend void describe(Parcel& parcel, auto&& fields) { fields(parcel.content); }
};

using Parcels = std::vector<RRef<Parcel>>;

// Lets go of the given references when it returns.
void hold(const Parcels&) {}

// Timers do not run in what is explored: whoever is given references keeps them until then.
void keep(CallContext& context, const Parcels&) { context.sleep(std::chrono::milliseconds(1)); }

int64_t look_inside(const RRef<Parcel>& parcel) { return parcel.rpc_sync(&Parcel::open); }

int64_t take_out(const RRef<Parcel>& parcel) { return parcel.to_here().content; }

void pass_back(CallContext& context, const RRef<Parcel>& parcel) {
  context.rpc_sync(kCreator, &hold, Parcels{parcel});
}

// At the owner: who holds the value itself passes it on.
void hand_out(CallContext& context, const RRef<Parcel>& parcel) {
  context.rpc_sync(WorkerId{kFirstUser}, &hold, Parcels{parcel});
}

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.type<Parcel>("Parcel").constructor<int64_t>().constructor<int64_t, std::string>().method(
      "open", &Parcel::open);
  registry.function("hold", &hold);
  registry.function("keep", &keep);
  registry.function("look_inside", &look_inside);
  registry.function("take_out", &take_out);
  registry.function("pass_back", &pass_back);
  registry.function("hand_out", &hand_out);
  return registry;
}

// The errors that may come when a worker was lost or taken for dead.
bool is_loss(ErrorKind kind) {
  return kind == ErrorKind::peer_lost || kind == ErrorKind::fenced ||
         kind == ErrorKind::rref_deleted;
}

bool is_loss(const RpcError& error) {
  return is_loss(error.kind()) || error.kind() == ErrorKind::remote_exception;
}

template <class T>
void settle(const Future<T>& future) {
  try {
    future.wait();
  } catch (const RpcError& error) {
    if (!is_loss(error)) throw;
  }
}

struct Story {
  explicit Story(const Options& options)
      : references(options.integer("references")),
        forks(options.integer("forks")),
        copies(options.integer("copies")),
        use(static_cast<Use>(options.integer("use"))),
        waits(options.integer("waits") != 0),
        keeps(options.integer("keeps") != 0),
        fetches(options.integer("fetches")),
        owner_use(options.integer("owner_use")),
        is_large(options.integer("large") != 0) {}
  int64_t references;
  int64_t forks;
  int64_t copies;
  Use use;
  bool waits;       // the creator, before it passes it on
  bool keeps;       // the creator, to the end
  int64_t fetches;  // the creator
  int64_t owner_use;
  bool is_large;  // the message that creates
};

class Creator {
 public:
  Creator(Worker& worker, const Story& story) : worker_(worker), story_(story) {}

  void run() {
    Parcels parcels;
    for (int64_t i = 0; i < story_.references; ++i) parcels.push_back(create());
    for (RRef<Parcel>& parcel : parcels) {
      pass_on(parcel);
      if (!story_.keeps) parcel = {};
    }
    for (const auto& given : given_) settle(given);
    for (const auto& look : looks_) settle(look);
    for (const auto& fetched : fetched_) settle(fetched);
  }

 private:
  RRef<Parcel> create() {
    if (!story_.is_large) return worker_.remote<Parcel>(kOwner, kContent);
    return worker_.remote<Parcel>(kOwner, kContent, std::string(kSmallFrameBytes, ' '));
  }

  void pass_on(const RRef<Parcel>& parcel) {
    if (story_.waits) settle(parcel.created());
    for (int64_t i = 0; i < story_.fetches; ++i) fetched_.push_back(parcel.to_here_async());
    if (story_.owner_use == 1) given_.push_back(worker_.rpc_async(kOwner, &hold, Parcels{parcel}));
    if (story_.owner_use == 2) given_.push_back(worker_.rpc_async(kOwner, &hand_out, parcel));
    const auto users = static_cast<int64_t>(worker_.workers().size()) - kFirstUser;
    for (int64_t fork = 0; fork < story_.forks; ++fork)
      give(WorkerId{static_cast<uint32_t>(kFirstUser + fork % users)}, parcel, use_of(fork));
  }

  Use use_of(int64_t fork) const {
    if (story_.use != Use::drop_and_keep) return story_.use;
    return fork % 2 == 0 ? Use::drop : Use::keep;
  }

  void give(WorkerId to, const RRef<Parcel>& parcel, Use use) {
    const Parcels parcels(static_cast<size_t>(story_.copies), parcel);
    switch (use) {
      case Use::drop:
        return given_.push_back(worker_.rpc_async(to, &hold, parcels));
      case Use::call:
        return looks_.push_back(worker_.rpc_async(to, &look_inside, parcel));
      case Use::fetch:
        return looks_.push_back(worker_.rpc_async(to, &take_out, parcel));
      case Use::pass_back:
        return given_.push_back(worker_.rpc_async(to, &pass_back, parcel));
      case Use::keep:
      case Use::drop_and_keep:
        return given_.push_back(worker_.rpc_async(to, &keep, parcels));
    }
  }

  Worker& worker_;
  const Story story_;
  std::vector<Future<Unit>> given_;
  std::vector<Future<int64_t>> looks_;
  std::vector<Future<Parcel>> fetched_;
};

Program rref_fork_program(const ScenarioRun& run) {
  Program program(functions());
  program.worker("creator",
                 [story = Story(run.options)](Worker& worker) { Creator(worker, story).run(); });
  program.worker("owner");
  program.worker("user", Count{static_cast<uint32_t>(run.options.integer("workers")) - kFirstUser});
  return program;
}

// A hunt draws them from the least to `drawn_max`.
OptionTable::Integer number(int64_t otherwise, int64_t min, int64_t max, std::string meaning,
                            int64_t drawn_max) {
  return {.full = otherwise,
          .tiny = otherwise,
          .min = min,
          .max = max,
          .meaning = std::move(meaning),
          .drawn_min = min,
          .drawn_max = drawn_max};
}

}  // namespace

Scenario rref_fork_scenario() {
  Scenario scenario;
  scenario.name = "rref_fork";
  scenario.summary = "one reference, created, passed on and dropped; small enough for explore";
  scenario.options.integer("workers", number(3, 3, 8, "workers", 5))
      .integer("references", number(1, 1, 10, "how many are created", 2))
      .integer("forks", number(1, 0, 100, "how often each is passed on", 3))
      .integer("copies",
               number(1, 1, 10, "how many of them one call brings, where use is 0, 4 or 5", 3))
      .integer("use", number(0, 0, 5,
                             "who is given the reference drops it (0), calls a method of it (1), "
                             "fetches its value (2), passes it back to the creator (3) or "
                             "keeps it (4); or some drop it, some keep it (5)",
                             5))
      .integer("waits", number(0, 0, 1, "1: it is passed on only once it is there", 1))
      .integer("keeps", number(0, 0, 1, "1: the creator drops it only when all have answered", 1))
      .integer("fetches", number(0, 0, 10, "how often the creator fetches the value", 2))
      .integer("owner_use", number(0, 0, 2,
                                   "the owner is given it, too, and drops it (1) or passes it on "
                                   "to a user (2)",
                                   2))
      .integer("large", number(0, 0, 1, "1: other messages can overtake the one that creates", 1))
      .integer("faults", {.full = 1,
                          .tiny = 1,
                          .min = 0,
                          .max = 2,
                          .meaning = "cuts, crashes and false suspicions in a run of explore"});
  scenario.program = rref_fork_program;
  return scenario;
}

}  // namespace rehearsal
