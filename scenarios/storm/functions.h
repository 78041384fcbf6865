#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/api/autograd_context.h"
#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/rref.h"

// The functions that the workers of a storm call on each other, and the sequential model: the
// result that each must give.
namespace rehearsal::storm {

// The tensor on a device of this worker, or on the CPU, as the word says; as it is where there are
// no devices.
at::Tensor placed(const WorkerAccess& worker, uint64_t word, const at::Tensor& tensor);

// A journey through the group: which worker is next is drawn from its word.
struct Journey {
  uint64_t word = 0;
  int64_t hops = 0;
  int64_t value = 0;
  friend void describe(Journey& journey, auto&& fields) {
    fields(journey.word, journey.hops, journey.value);
  }
};

// Where the journey goes from its present worker, and as what.
struct Leg {
  WorkerId to;
  Journey journey;
};
[[nodiscard]] Leg next_leg(const Journey& journey, size_t workers);

// Nested calls, one for each hop; and the same with asynchronous execution.
int64_t travel(CallContext& context, const Journey& journey);
Future<int64_t> travel_asynchronously(CallContext& context, const Journey& journey);
[[nodiscard]] int64_t expected_travel(const Journey& journey, size_t workers);

// A value that references are made of. Additions commute, so its total does not depend on their
// order.
class Counter {
 public:
  explicit Counter(int64_t start) : total_(start) {}
  int64_t add(int64_t amount) { return total_ += amount; }
  // Looks away between reading and writing: only the monitor makes it right.
  int64_t add_slowly(CallContext& context, const Journey& meanwhile);
  // Waits for somebody else to add, who needs the monitor meanwhile.
  int64_t let_add(CallContext& context, const RRef<Counter>& self, const Journey& by);
  int64_t total() const { return total_; }

 private:
  int64_t total_;
};

// Adds to the counter here and at each worker of the journey.
void bump(CallContext& context, const RRef<Counter>& counter, int64_t amount,
          const Journey& journey);

// Gives back a reference that it was given, through the workers of the journey.
RRef<Counter> carry(CallContext& context, const RRef<Counter>& counter, const Journey& journey);

// Passes the reference on and forgets it: on the way only what is in flight keeps the value.
void wander(CallContext& context, const RRef<Counter>& counter, const Journey& journey);

// Keeps references for others. A reference in it keeps its value alive.
class Shelf {
 public:
  Shelf() = default;
  void put(const std::string& name, const RRef<Counter>& counter);
  RRef<Counter> get(const std::string& name) const;
  void drop(const std::string& name);
  // Two shelves that keep each other are ended by nothing but a shutdown.
  void keep(const RRef<Shelf>& other) { kept_ = other; }
  int64_t size() const { return static_cast<int64_t>(counters_.size()); }

 private:
  std::map<std::string, RRef<Counter>> counters_;
  RRef<Shelf> kept_;
};

// A value too large for the small lane.
class Blob {
 public:
  explicit Blob(at::Tensor content) : content_(std::move(content)) {}
  at::Tensor content() const { return content_; }
  double sum() const;
  double sum_with(const at::Tensor& other) const;

 private:
  at::Tensor content_;
};

// Numbers, in the order in which they were written.
class Diary {
 public:
  Diary() = default;
  // Of an odd number it looks away before it writes.
  void write(CallContext& context, int64_t number, const at::Tensor& padding);
  std::vector<int64_t> numbers() const { return numbers_; }

 private:
  std::vector<int64_t> numbers_;
};

double sum_of(const at::Tensor& content);

double weigh(CallContext& context, const RRef<Blob>& blob);

// One value of a stream: as the stream's word says it is large, and so on the other lane, or small,
// and brings a reference or none.
struct Reading {
  int64_t number = 0;
  at::Tensor padding;
  std::optional<RRef<Counter>> counter;  // of this number
  friend void describe(Reading& reading, auto&& fields) {
    fields(reading.number, reading.padding, reading.counter);
  }
};

// So many readings, which the journey's last worker makes and all others pass on.
void read_out(CallContext& context, StreamWriter<Reading>& out, const Journey& journey,
              int64_t count);
// The number of the reading at this position.
[[nodiscard]] int64_t expected_reading(const Journey& journey, int64_t position, size_t workers);

// Lets wait for what never comes.
class Latch {
 public:
  Latch() = default;
  Future<int64_t> wait(CallContext& context);

 private:
  std::vector<Promise<int64_t>> never_;
};

// Waits at the end of the journey: returns only if it is given up.
int64_t hold(CallContext& context, const RRef<Latch>& latch, const Journey& journey);

// A lock that functions take and give back, whatever becomes of their calls.
class Lock {
 public:
  Lock() = default;
  void take() { ++taken_; }
  void give() { --taken_; }
  int64_t taken() const { return taken_; }

 private:
  int64_t taken_ = 0;
};

// Has the lock for as long as it lives, wherever that is (lock_operations.cc).
class Lease {
 public:
  Lease(const WorkerAccess& here, const RRef<Lock>& lock);
  Lease(Lease&&) noexcept = default;
  Lease& operator=(Lease&&) = delete;
  ~Lease();

 private:
  RRef<Lock> lock_;
};

// Holds the lock for the time of the journey (lock_operations.cc). Throws if its word is odd.
int64_t travel_locked(CallContext& context, const RRef<Lock>& lock, const Journey& journey);
int64_t taken_there(CallContext& context, const RRef<Lock>& lock);

// x · factor, at each worker of the journey in turn.
at::Tensor scale(CallContext& context, const at::Tensor& x, double factor, const Journey& journey);

// The same with asynchronous execution.
Future<at::Tensor> scale_asynchronously(CallContext& context, const at::Tensor& x, double factor,
                                        const Journey& journey);

// x · factor twice: once calculated here, once by another worker.
std::vector<at::Tensor> scale_twice(CallContext& context, const at::Tensor& x, double factor,
                                    const Journey& journey);

// A parameter, with the gradients that autograd contexts have for it.
class Layer {
 public:
  Layer(CallContext& context, double weight);
  // x · weight, here and then in the next layer.
  at::Tensor forward(const at::Tensor& x, const std::vector<RRef<Layer>>& next);
  // The same with asynchronous execution: the next layer is called by a continuation.
  Future<at::Tensor> forward_asynchronously(CallContext& context, const at::Tensor& x,
                                            const RRef<Layer>& next);
  // x, from wherever it lives, · weight.
  at::Tensor forward_fetched(const RRef<at::Tensor>& x) { return forward(x.to_here(), {}); }
  at::Tensor gradient(CallContext& context) const;

 private:
  at::Tensor weight_;
};

// Throws.
int64_t fail(const std::string& text);
// Throws at the end of the journey.
int64_t fail_at_last(CallContext& context, const std::string& text, const Journey& journey);

// Of which no message can be made, behind a reference that would be in it.
struct Broken {
  RRef<Counter> counter;
  at::Tensor misfit;
  friend void describe(Broken& broken, auto&& fields) { fields(broken.counter, broken.misfit); }
};
// Is made at the end of the journey, and gets no further.
Broken break_at_last(CallContext& context, const RRef<Counter>& counter, const Journey& journey);

// Has every worker that can be reached call worker `known` back. Throws std::logic_error if one of
// them does not know it.
void make_known(CallContext& context, int64_t known);
int64_t call_back(CallContext& context, int64_t known);

// The value that the reference refers to.
int64_t look(CallContext& context, const RRef<int64_t>& number);

// ---- names and states (name_operations.cc) ----

// The total of the counter that worker `at` has published, asked from the journey's last worker.
int64_t total_by_name(CallContext& context, int64_t at, const std::string& name,
                      const Journey& journey);

// The state of a worker: accounts that others open here. It takes its time to be made.
class Accounts {
 public:
  Accounts(Worker& worker, Seed seed);
  // Throws std::logic_error where it is not its owner's.
  void check_owner(const std::string& worker) const;
  uint64_t open() { return totals_.emplace_hint(totals_.end(), ++opened_, 0)->first; }
  std::map<uint64_t, int64_t>& totals() { return totals_; }

 private:
  const std::string owner_;
  uint64_t opened_;  // the number of the last one
  std::map<uint64_t, int64_t> totals_;
};

uint64_t open_account(CallContext& context);
// Nothing if this life of the worker does not know the account.
std::optional<int64_t> pay_in(CallContext& context, uint64_t account, int64_t amount);
std::optional<int64_t> close_account(CallContext& context, uint64_t account);

void register_names(FunctionRegistry& registry);

[[nodiscard]] FunctionRegistry functions();

}  // namespace rehearsal::storm
