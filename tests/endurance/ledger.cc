#include "tests/endurance/ledger.h"

#include <ATen/ops/ones.h>

#include <atomic>
#include <mutex>

#include "core/api/call_context.h"
#include "core/api/rref.h"
#include "core/api/worker.h"
#include "core/base/hash.h"

namespace rehearsal::endurance {
namespace {

constexpr size_t kCallsMax = 1 << 16;

enum class Answer : uint8_t { none, value, error };

struct Entry {
  std::atomic<uint32_t> runs{0};
  std::atomic<Answer> answer{Answer::none};
};

// Of this process: the functions that workers call are plain functions.
struct Book {
  std::vector<Entry> entries{kCallsMax};
  std::atomic<uint64_t> count{0};
  std::mutex mutex;
  std::vector<std::string> complaints;

  Entry& at(int64_t call) { return entries.at(static_cast<size_t>(call)); }
  void complain(const std::string& text) {
    const std::lock_guard lock(mutex);
    complaints.push_back(text);
  }
};
Book* book = nullptr;

int64_t note(int64_t call) {
  ++book->at(call).runs;
  return call;
}

int64_t note_with(int64_t call, const at::Tensor& load) {
  note(call);
  return call + load.numel();
}

class Account {
 public:
  explicit Account(int64_t call) : call_(note(call)) {}
  int64_t add(int64_t call) { return call_ + note(call); }

 private:
  int64_t call_;
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("note", &note).function("note_with", &note_with);
  registry.type<Account>("Account").constructor<int64_t>().method("add", &Account::add);
  return registry;
}

// Why a call may fail where workers are lost; nothing else is told.
bool is_accounted_for(const Error& error) {
  using enum ErrorKind;
  const bool fits = error.kind == peer_lost || error.kind == fenced || error.kind == timeout ||
                    error.kind == rref_deleted || error.kind == node_stopped;
  return fits && !error.worker.empty() && !error.text.empty();
}

class Caller {
 public:
  Caller(Worker& worker, Seed seed) : worker_(worker), seed_(seed.value) {}

  void act(int64_t steps) {
    for (int64_t step = 0; step < steps; ++step) {
      word_ = mix(mix(seed_, hash_text(worker_.name())), static_cast<uint64_t>(step));
      one_step();
    }
  }

 private:
  uint64_t draw(uint64_t count) { return (word_ = mix(word_, count)) % count; }
  WorkerId anybody() { return {static_cast<uint32_t>(draw(worker_.workers().size()))}; }
  static int64_t new_call() { return static_cast<int64_t>(book->count++); }

  void one_step() {
    switch (draw(4)) {
      case 0:
        return settle(new_call(), 0,
                      [&](int64_t call) { return worker_.rpc_async(anybody(), &note, call); });
      case 1:
        return call_many();
      case 2:
        return send_much();
      default:
        return keep_account();
    }
  }

  // A call has its value, or one error.
  template <class Start>
  void settle(int64_t call, int64_t more, Start start) {
    const Result<int64_t> result = start(call).result();
    enter(call, more, result);
  }

  void enter(int64_t call, int64_t more, const Result<int64_t>& result) {
    Entry& entry = book->at(call);
    const Answer answer = result.ok() ? Answer::value : Answer::error;
    if (entry.answer.exchange(answer) != Answer::none) complain(call, "has two answers");
    if (result.ok() && result.value() != call + more) complain(call, "has a wrong value");
    if (!result.ok() && !is_accounted_for(result.error()))
      complain(call, "failed with " + to_string(result.error()));
  }

  void complain(int64_t call, const std::string& text) {
    book->complain("call " + std::to_string(call) + " of " + worker_.name() + " " + text);
  }

  void call_many() {
    std::vector<std::pair<int64_t, Future<int64_t>>> calls;
    for (uint64_t left = 2 + draw(20); left > 0; --left) {
      const int64_t call = new_call();
      calls.emplace_back(call, worker_.rpc_async(anybody(), &note, call));
    }
    for (const auto& [call, future] : calls) enter(call, 0, future.result());
  }

  void send_much() {
    const auto size = static_cast<int64_t>(1'000 + draw(200'000));
    settle(new_call(), size, [&](int64_t call) {
      return worker_.rpc_async(anybody(), &note_with, call, at::ones({size}));
    });
  }

  void keep_account() {
    const int64_t made = new_call();
    const auto account = worker_.remote<Account>(anybody(), made);
    const int64_t added = new_call();
    const Result<int64_t> sum = account.rpc_async(&Account::add, added).result();
    enter(added, made, sum);
    // It was made, or why not has been told.
    enter(made, 0, sum.ok() ? Result<int64_t>(made) : Result<int64_t>(sum.error()));
  }

  Worker& worker_;
  const uint64_t seed_;
  uint64_t word_ = 0;
};

}  // namespace

Ledger::Ledger() { book = new Book(); }

Ledger::~Ledger() {
  delete book;
  book = nullptr;
}

Program Ledger::program(uint32_t workers, int64_t steps, Seed seed) {
  static const FunctionRegistry registry = functions();
  Program program(registry);
  program.worker(
      "worker", [steps, seed](Worker& worker) { Caller(worker, seed).act(steps); }, Count{workers});
  return program;
}

std::vector<std::string> Ledger::complaints() const {
  std::vector<std::string> all = book->complaints;
  for (uint64_t call = 0; call < book->count; ++call) {
    const Entry& entry = book->entries[call];
    const uint32_t runs = entry.runs;
    if (entry.answer == Answer::none)
      all.push_back("call " + std::to_string(call) + " has neither value nor error");
    if (runs > 1) all.push_back("call " + std::to_string(call) + " has run twice");
    if (entry.answer == Answer::value && runs != 1)
      all.push_back("call " + std::to_string(call) + " has a value, and has not run");
  }
  return all;
}

uint64_t Ledger::calls() const { return book->count; }

uint64_t Ledger::values() const {
  uint64_t values = 0;
  for (uint64_t call = 0; call < book->count; ++call)
    if (book->entries[call].answer == Answer::value) ++values;
  return values;
}

}  // namespace rehearsal::endurance
