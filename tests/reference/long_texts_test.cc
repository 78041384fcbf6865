// Goal: every text, name and list that a program makes long is shortened or refused alike over TCP
// and in the simulator, ends no process, and everybody serves on. Method: beyond the
// rows; each place with four lengths, once in each world, and what is told is compared.
#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/base/short_text.h"
#include "tests/reference/row.h"

namespace rehearsal {
namespace reference::long_texts_test {
namespace {

constexpr int64_t kLengths[] = {1'000'000, 63 << 20, 64 << 20, 200'000'000};

std::string long_text(int64_t bytes) {
  std::string text = "0123456789";
  text.resize(static_cast<size_t>(bytes), 'x');
  return text;
}

// ---- what the server does ----

int64_t next(int64_t number) { return number + 1; }

int64_t throws(int64_t bytes) { throw std::runtime_error(long_text(bytes)); }

at::Tensor throws_of_torch(int64_t bytes) {
  TORCH_CHECK(false, long_text(bytes));
  return {};
}

struct Loud : std::runtime_error {
  using std::runtime_error::runtime_error;
};
int64_t throws_registered(int64_t bytes) { throw Loud(long_text(bytes)); }

// As a program may make one: all but its text is long.
int64_t throws_error(int64_t bytes) {
  throw RpcError({.kind = ErrorKind::storage,
                  .text = "mine",
                  .worker = "0123",
                  .function = long_text(bytes / 10),
                  .chain = std::vector<std::string>(static_cast<size_t>(bytes / 1'000), "w"),
                  .trace = long_text(bytes)});
}

int64_t relays(CallContext& call, int64_t bytes) {
  return call.rpc_sync("worker2", &throws, bytes);
}

Future<int64_t> fails_later(CallContext& call, int64_t bytes) {
  const Promise<int64_t> promise = call.promise<int64_t>();
  promise.complete(Error{.kind = ErrorKind::storage, .text = long_text(bytes)});
  return promise.future();
}

Future<int64_t> throws_later(CallContext& call, int64_t bytes) {
  return call.after(std::chrono::milliseconds(1)).then([bytes]() -> int64_t {
    return throws(bytes);
  });
}

void throws_in_stream(StreamWriter<int64_t>& out, int64_t bytes) {
  out.write(1);
  throws(bytes);
}

struct Unmade {
  explicit Unmade(int64_t bytes) { throws(bytes); }
  int64_t use() { return 0; }
};

at::Tensor throws_in_pass(const at::Tensor& input, int64_t bytes) {
  at::Tensor output = input * 2;
  output.register_hook([bytes](const at::Tensor&) { throws(bytes); });
  return output;
}

// Reading it fails, and says much about it.
struct Picky {
  int64_t bytes = 0;
};
int64_t takes(const Picky& picky) { return picky.bytes; }

int64_t length_of(const std::string& text) { return static_cast<int64_t>(text.size()); }

std::string gives(int64_t bytes) { return long_text(bytes); }

}  // namespace
}  // namespace reference::long_texts_test

template <>
struct Value<reference::long_texts_test::Picky> {
  static void write(ValueWriter& writer, const reference::long_texts_test::Picky& picky) {
    writer.integer(picky.bytes);
  }
  static reference::long_texts_test::Picky read(ValueReader& reader) {
    throw BadValue(reference::long_texts_test::long_text(reader.integer()));
  }
  static void sign(WireSignature& signature) { signature += "picky"; }
};

namespace reference::long_texts_test {
namespace {

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("next", &next)
      .function("throws", &throws)
      .function("throws_of_torch", &throws_of_torch)
      .function("throws_registered", &throws_registered)
      .function("throws_error", &throws_error)
      .function("relays", &relays)
      .function("fails_later", &fails_later)
      .function("throws_later", &throws_later)
      .function("throws_in_stream", &throws_in_stream)
      .function("throws_in_pass", &throws_in_pass)
      .function("takes", &takes)
      .function("length_of", &length_of)
      .function("gives", &gives);
  registry.type<Unmade>("Unmade").constructor<int64_t>().method("use", &Unmade::use);
  registry.exception<Loud>("Loud");
  return registry;
}

// ---- what its caller does ----

constexpr const char* kServer = "worker1";

struct Place {
  std::string name;
  std::function<void(Worker&, int64_t)> body;
};

std::vector<Place> errors_of_a_callee() {
  return {
      {"throws", [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &throws, n); }},
      {"asynchronous",
       [](Worker& worker, int64_t n) { (void)worker.rpc_async(kServer, &throws, n).wait(); }},
      {"of torch",
       [](Worker& worker, int64_t n) { (void)worker.rpc_sync(kServer, &throws_of_torch, n); }},
      {"registered",
       [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &throws_registered, n); }},
      {"an error", [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &throws_error, n); }},
      {"relayed", [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &relays, n); }},
      {"deferred", [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &fails_later, n); }},
      {"continuation",
       [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &throws_later, n); }},
      {"stream",
       [](Worker& worker, int64_t n) {
         auto stream = worker.rpc_stream(kServer, &throws_in_stream, n);
         EXPECT_EQ(stream.next(), 1);
         (void)stream.next();
       }},
      {"constructor",
       [](Worker& worker, int64_t n) {
         (void)worker.remote<Unmade>(kServer, n).rpc_sync(&Unmade::use);
       }},
      {"pass",
       [](Worker& worker, int64_t n) {
         const at::Tensor input = at::ones({2}).requires_grad_();
         const AutogradContext context = worker.autograd_context();
         context.backward({context.rpc_sync(kServer, &throws_in_pass, input, n).sum()});
       }},
      {"itself", [](Worker& worker, int64_t n) { worker.rpc_sync("worker0", &throws, n); }},
  };
}

std::vector<Place> names_and_values() {
  return {
      {"value", [](Worker& worker, int64_t n) { worker.rpc_sync(kServer, &takes, Picky{n}); }},
      {"argument",
       [](Worker& worker, int64_t n) {
         EXPECT_EQ(worker.rpc_sync(kServer, &length_of, long_text(n)), n);
       }},
      {"result", [](Worker& worker,
                    int64_t n) { EXPECT_EQ(length_of(worker.rpc_sync(kServer, &gives, n)), n); }},
      {"operator",
       [](Worker& worker, int64_t n) {
         (void)worker.rpc_sync<at::Tensor>(kServer, "aten::" + long_text(n), at::ones({1}));
       }},
      {"created operator",
       [](Worker& worker, int64_t n) {
         (void)worker.remote_by_name<at::Tensor>(kServer, "aten::" + long_text(n), at::ones({1}))
             .to_here();
       }},
      {"keyword",
       [](Worker& worker, int64_t n) {
         (void)worker.rpc_sync<at::Tensor>(kServer, "aten::add", at::ones({1}), at::ones({1}),
                                           kwarg(long_text(n), 2));
       }},
      {"function",
       [](Worker& worker, int64_t n) { worker.rpc_sync<int64_t>(kServer, long_text(n), n); }},
      {"worker", [](Worker& worker, int64_t n) { worker.rpc_sync(long_text(n), &next, n); }},
      {"published",
       [](Worker& worker, int64_t n) {
         worker.publish(long_text(n), worker.rref(n));
         EXPECT_EQ(worker.lookup<int64_t>(worker.name(), long_text(n)).to_here(), n);
         worker.unpublish(long_text(n));
       }},
      {"looked up",
       [](Worker& worker, int64_t n) {
         (void)worker.lookup<int64_t>(kServer, long_text(n), std::chrono::milliseconds(50));
       }},
      {"note", [](Worker& worker, int64_t n) { worker.note(long_text(n), long_text(n)); }},
  };
}

// ---- what it is told ----

struct Told {
  std::string place;
  int64_t bytes = 0;
  std::optional<ErrorKind> kind = {};  // none: it went well
  std::string worker = {};
  std::string function = {};
  std::string begin = {};  // of the text
  std::string end = {};    // the same, if it was shortened
  bool operator==(const Told&) const = default;
};

void PrintTo(const Told& told, std::ostream* out) {
  *out << told.place << " of " << told.bytes
       << " bytes: " << (told.kind ? name_of(*told.kind) : "well") << " at '" << told.worker
       << "' in '" << told.function.substr(0, 100) << "': " << told.begin.substr(0, 200) << " …"
       << told.end;
}

Told told_by(Worker& worker, const Place& place, int64_t bytes) {
  constexpr size_t kCompared = 1'000;
  constexpr size_t kEnd = 40;
  Told told{.place = place.name, .bytes = bytes};
  try {
    place.body(worker, bytes);
  } catch (const std::exception& thrown) {
    const Error* const error = rehearsal::error_of(thrown);
    if (error == nullptr) {
      ADD_FAILURE() << place.name << ": " << std::string(thrown.what()).substr(0, 200);
      return told;
    }
    EXPECT_LE(error->text.size(), kErrorTextMax + 2 * kErrorNameMax) << place.name;
    told.kind = error->kind;
    told.worker = error->worker;
    told.function = error->function;
    told.begin = error->text.substr(0, kCompared);
    if (error->text.ends_with(" bytes more"))
      told.end = error->text.substr(error->text.size() - kEnd);
  }
  return told;
}

void tell_all(Worker& worker, const std::vector<Place>& places, std::vector<Told>& story) {
  for (const Place& place : places) {
    for (const int64_t bytes : kLengths) {
      story.push_back(told_by(worker, place, bytes));
      EXPECT_EQ(worker.rpc_sync(kServer, &next, bytes), bytes + 1) << place.name;
    }
  }
}

Program telling(const std::vector<Place>& places, std::vector<Told>& story) {
  return one_caller(
      functions(), [&](Worker& worker) { tell_all(worker, places, story); }, /*servers=*/2);
}

// Hundreds of megabytes take their time.
sim::ClusterOptions patient() { return {.faults = sim::FaultLevel::none, .watchdog = {}}; }

// The same in both worlds.
std::vector<Told> told_in_both_worlds(const std::vector<Place>& places) {
  std::vector<Told> simulated;
  const Program first = telling(places, simulated);
  sim::Cluster(Seed{1}, first, patient()).run();
  std::vector<Told> real;
  const Program second = telling(places, real);
  real::GroupOptions options;
  options.node.strict_leaks = true;
  real::LoopbackGroup group(second, options);
  for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  EXPECT_EQ(simulated.size(), real.size());
  for (size_t i = 0; i < std::min(simulated.size(), real.size()); ++i)
    EXPECT_EQ(simulated[i], real[i]);
  return real;
}

const Told& find_told(const std::vector<Told>& story, const std::string& place, int64_t bytes) {
  for (const Told& told : story)
    if (told.place == place && told.bytes == bytes) return told;
  throw std::logic_error("nothing was told of " + place);
}

TEST(LongTexts, OfACalleesErrorsArriveShortenedAndEqualInBothWorlds) {
  // Goal: kind, worker, function, the first letters and how many are left out. Method: every way in
  // which what a callee throws reaches its caller.
  const std::vector<Told> story = told_in_both_worlds(errors_of_a_callee());
  const Told& thrown = find_told(story, "throws", 64 << 20);
  EXPECT_EQ(thrown.kind, ErrorKind::remote_exception);
  EXPECT_EQ(thrown.worker, kServer);
  EXPECT_EQ(thrown.function, "throws");
  EXPECT_TRUE(thrown.begin.starts_with("std::runtime_error: 0123456789xxx")) << thrown.begin;
  EXPECT_TRUE(thrown.end.ends_with("xxx… and 67,043,328 bytes more")) << thrown.end;
  const Told& relayed = find_told(story, "relayed", 64 << 20);
  EXPECT_EQ(relayed.worker, "worker2");
  EXPECT_EQ(relayed.begin, thrown.begin);
  EXPECT_EQ(relayed.end, thrown.end);
  for (const Told& told : story) EXPECT_TRUE(told.kind) << told.place;
}

TEST(LongTexts, OfNamesAndValuesAreTakenOrRefusedAlikeInBothWorlds) {
  // Goal: up to a MiB they are taken where any text is; what is refused says how much is allowed.
  // Method: everything that a caller names or gives.
  const std::vector<Told> story = told_in_both_worlds(names_and_values());
  for (const int64_t bytes : kLengths) {
    for (const char* place : {"operator", "created operator"}) {
      const Told& told = find_told(story, place, bytes);
      EXPECT_EQ(told.kind, ErrorKind::unknown_function);
      EXPECT_EQ(told.worker, kServer);
      EXPECT_TRUE(told.begin.starts_with("there is no operator 'aten::0123456789x")) << told.begin;
    }
    EXPECT_FALSE(find_told(story, "note", bytes).kind);
    const bool is_short = bytes <= 1 << 20;
    for (const char* place : {"argument", "result", "published"})
      EXPECT_EQ(find_told(story, place, bytes).kind,
                is_short ? std::nullopt : std::optional(ErrorKind::bad_arguments))
          << place << " of " << bytes;
    EXPECT_EQ(find_told(story, "looked up", bytes).kind,
              is_short ? ErrorKind::timeout : ErrorKind::bad_arguments);
  }
  const Told& argument = find_told(story, "argument", 64 << 20);
  EXPECT_TRUE(argument.begin.starts_with("too much for one message: 67108868 bytes"))
      << argument.begin;
  EXPECT_TRUE(contains(argument.begin, "where 66060288 are allowed")) << argument.begin;
}

// ---- the end of a main ----

Future<Unit> hour(CallContext& call) { return call.after(std::chrono::hours(1)); }

// One worker's main throws while another waits for it.
Program failing_main(int64_t bytes, Told& told) {
  FunctionRegistry registry = functions();
  registry.function("hour", &hour);
  Program program(registry);
  program.worker("worker0", [bytes](Worker& worker) {
    EXPECT_EQ(worker.rpc_sync(kServer, &next, 1), 2);
    throws(bytes);
  });
  const Place waits{"end of a main", [](Worker& worker, int64_t) {
                      worker.with_timeout(Timeout::never()).rpc_sync("worker0", &hour);
                    }};
  program.worker("worker1",
                 [bytes, waits, &told](Worker& worker) { told = told_by(worker, waits, bytes); });
  return program;
}

TEST(LongTexts, OfAMainsEndReachTheOthersShortened) {
  // Goal: the others hear why a main has failed, and it ends in good order. Method: one worker
  // waits for the one whose main throws, once that has called it.
  for (const int64_t bytes : kLengths) {
    Told simulated;
    const Program first = failing_main(bytes, simulated);
    sim::Cluster cluster(Seed{1}, first, patient());
    const sim::RunReport& report = cluster.try_run();
    Told real;
    const Program second = failing_main(bytes, real);
    const std::vector<Status> ends = real::LoopbackGroup(second, {}).run();
    EXPECT_EQ(simulated, real);
    EXPECT_EQ(real.kind, ErrorKind::peer_lost);
    EXPECT_TRUE(real.begin.starts_with("worker 'worker0' has ended: std::runtime_error: 0123456"))
        << real.begin;
    EXPECT_TRUE(real.end.ends_with(" bytes more")) << real.end;
    ASSERT_FALSE(ends[0].ok());
    ASSERT_TRUE(report.workers.at(0).error);
    EXPECT_EQ(ends[0].error().text, report.workers[0].error->text);
    EXPECT_LE(ends[0].error().text.size(), kErrorTextMax);
  }
}

}  // namespace
}  // namespace reference::long_texts_test
}  // namespace rehearsal
