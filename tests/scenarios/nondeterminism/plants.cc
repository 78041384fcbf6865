#include "tests/scenarios/nondeterminism/plants.h"

#include <ATen/Functions.h>
#include <locale.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "core/api/worker.h"
#include "core/base/hash.h"
#include "sim/world/clock_guard.h"

namespace rehearsal::plants {
namespace {

int64_t note(int64_t value) { return value; }
int64_t planted(int64_t value) { return value; }
int64_t planted_tensor(const at::Tensor& tensor) { return tensor.numel(); }

// ---- the mistakes ----

struct Thing {
  int64_t number;
  char name[40];
};

std::vector<std::unique_ptr<Thing>> make_things() {
  std::vector<std::unique_ptr<Thing>> things;
  for (int64_t i = 0; i < 16; ++i) things.push_back(std::make_unique<Thing>(Thing{i, {}}));
  return things;
}

// The numbers in the order of the iteration, as one number.
template <class Map>
int64_t order_of(const Map& map) {
  uint64_t order = 0;
  for (const auto& [thing, number] : map) order = mix(order, static_cast<uint64_t>(number));
  return static_cast<int64_t>(order);
}

int64_t address_order() {
  const auto things = make_things();
  std::map<const Thing*, int64_t> by_address;
  for (const auto& thing : things) by_address[thing.get()] = thing->number;
  return order_of(by_address);
}

int64_t unordered_iteration() {
  const auto things = make_things();
  std::unordered_map<const Thing*, int64_t> numbers;
  for (const auto& thing : things) numbers[thing.get()] = thing->number;
  return order_of(numbers);
}

int64_t read_the_clock() {
  const auto now = std::chrono::steady_clock::now();
  asm volatile("");  // no tail call: this function stays on the stack
  return now.time_since_epoch().count();
}

int64_t wall_clock() {
  const sim::RealClockAllowed past_the_guard;
  return read_the_clock();
}

// How far the other thread has come when this one looks.
int64_t race_a_thread() {
  std::atomic<int64_t> count = 0;
  std::atomic<bool> enough = false;
  std::thread other([&count, &enough] {
    while (!enough) ++count;
  });
  while (count < 1000) std::this_thread::yield();
  const int64_t seen = count;
  enough = true;
  other.join();
  return seen;
}

int64_t thread() {
  const sim::RealClockAllowed past_the_guard;
  return race_a_thread();
}

int64_t uninitialised_read() {
  constexpr size_t kBytes = 200;
  void* memory = std::malloc(kBytes);
  asm volatile("" : "+r"(memory));  // the compiler must not see that nobody has written there
  const auto* bytes = static_cast<const volatile unsigned char*>(memory);
  const int64_t value = bytes[kBytes - 1];
  std::free(memory);
  return value;
}

// As containers do that draw a salt when the process starts.
int64_t hash_salt() {
  uint64_t salt = 0;
  std::memcpy(&salt, reinterpret_cast<const void*>(getauxval(AT_RANDOM)), sizeof salt);
  const auto hash = [salt](int64_t number) { return mix(salt, static_cast<uint64_t>(number)); };
  std::unordered_map<int64_t, int64_t, decltype(hash)> numbers(16, hash);
  for (int64_t i = 0; i < 16; ++i) numbers[i] = i;
  return order_of(numbers);
}

// How many letters a word of six letters has, and how a half is written.
int64_t locale() {
  setlocale(LC_ALL, "");
  const auto letters = static_cast<int64_t>(std::mbstowcs(nullptr,
                                                          "gr\xc3\xbc\xc3\x9f"
                                                          "en",
                                                          0));
  const int64_t point = localeconv()->decimal_point[0];
  setlocale(LC_ALL, "C");
  return letters * 1000 + point;
}

int64_t environment() {
  const char* user = std::getenv("USER");
  return static_cast<int64_t>(hash_text(user == nullptr ? "nobody" : user));
}

int64_t static_counter() {
  static int64_t count = 0;
  return ++count;
}

// A large term swallows the last bits of a sum; its opposite does not bring them back.
int64_t float_sum_order() {
  std::vector<std::unique_ptr<double>> terms;
  for (int i = 0; i < 256; ++i) {
    const double large = i % 4 == 1 ? 1e15 : -1e15;
    terms.push_back(std::make_unique<double>(i % 2 == 0 ? i / 3.0 : large));
  }
  std::unordered_set<const double*> set;
  for (const auto& term : terms) set.insert(term.get());
  double sum = 0;
  for (const double* term : set) sum += *term;
  return std::bit_cast<int64_t>(sum);
}

// ---- what else the second process has otherwise ----

int64_t number_of(const void* address) { return std::bit_cast<int64_t>(address); }

int64_t heap_address() { return number_of(std::make_unique<char[]>(1000).get()); }

int64_t library_address() { return number_of(reinterpret_cast<const void*>(&std::strtol)); }

int64_t stack_address() { return number_of(__builtin_frame_address(0)); }

int64_t large_block_address() { return number_of(std::make_unique<char[]>(1 << 20).get()); }

int64_t time_zone() {
  const time_t noon = 12 * 3600;
  tm local{};
  localtime_r(&noon, &local);
  return local.tm_gmtoff;
}

int64_t working_folder() {
  return static_cast<int64_t>(hash_text(std::filesystem::current_path().string()));
}

int64_t core() { return sched_getcpu(); }

// ---- scenarios ----

using Value = int64_t (*)();

struct Plant {
  const char* name;
  Value value;
};
constexpr Plant kPlants[] = {{"address_order", address_order},
                             {"unordered_iteration", unordered_iteration},
                             {"wall_clock", wall_clock},
                             {"thread", thread},
                             {"uninitialised_read", uninitialised_read},
                             {"hash_salt", hash_salt},
                             {"locale", locale},
                             {"environment", environment},
                             {"static_counter", static_counter},
                             {"float_sum_order", float_sum_order},
                             {"heap_address", heap_address},
                             {"library_address", library_address},
                             {"stack_address", stack_address},
                             {"large_block_address", large_block_address},
                             {"time_zone", time_zone},
                             {"working_folder", working_folder},
                             {"core", core},
                             {"guarded_clock", read_the_clock},
                             {"guarded_thread", race_a_thread}};

using Client = std::function<void(Worker&, Reporter&)>;

Scenario scenario_of(const std::string& name, const Client& client) {
  Scenario scenario;
  scenario.name = name;
  scenario.summary = "a planted source of nondeterminism";
  scenario.program = [client](const ScenarioRun& run) {
    FunctionRegistry registry;
    registry.function("note", &note);
    registry.function("planted", &planted);
    registry.function("planted_tensor", &planted_tensor);
    Program program(std::move(registry));
    program.worker("server", [](Worker&) {});
    program.worker(
        "client", [client, &reporter = run.reporter](Worker& worker) { client(worker, reporter); });
    return program;
  };
  return scenario;
}

void make_calls(Worker& worker, const std::function<void()>& fourth) {
  for (int64_t i = 0; i < 5; ++i) {
    if (i == 3)
      fourth();
    else
      worker.rpc_sync("server", &note, i);
  }
}

}  // namespace

std::vector<Scenario> scenarios() {
  std::vector<Scenario> made;
  for (const Plant& plant : kPlants)
    made.push_back(scenario_of(plant.name, [value = plant.value](Worker& worker, Reporter&) {
      make_calls(worker, [&] { worker.rpc_sync("server", &planted, value()); });
    }));
  made.push_back(scenario_of("tensor", [](Worker& worker, Reporter&) {
    make_calls(worker, [&] {
      const at::Tensor tensor = at::full({8}, static_cast<double>(environment()));
      worker.rpc_sync("server", &planted_tensor, tensor);
    });
  }));
  made.push_back(scenario_of("result", [](Worker& worker, Reporter& reporter) {
    make_calls(worker, [] {});
    reporter.results.number("calls", 5);
    reporter.results.number("zone", static_cast<double>(time_zone()));
  }));
  made.push_back(scenario_of("tensor_result", [](Worker& worker, Reporter& reporter) {
    make_calls(worker, [] {});
    reporter.results.number("calls", 5);
    reporter.results.tensor("calls", at::ones({5}));
    reporter.results.tensor("zone", at::full({2}, static_cast<double>(time_zone())));
  }));
  made.push_back(scenario_of("nothing", [](Worker& worker, Reporter&) {
    make_calls(worker, [&] { worker.rpc_sync("server", &planted, int64_t{7}); });
  }));
  return made;
}

}  // namespace rehearsal::plants
