#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/api/calls.h"
#include "core/base/call_bounds.h"
#include "core/base/future.h"

namespace rehearsal {

// When a Batcher runs what it has collected.
struct BatchOptions {
  // So many items run at once; no batch has more. At least one.
  uint64_t size = 1;
  // How long the first item of a batch that is not full waits for others; none: until the batch is
  // full, or flushed.
  std::optional<Duration> delay;

  // Throws std::invalid_argument for what cannot be.
  void check() const;
};

namespace detail {

inline constexpr std::string_view kCallerGaveUp = "its caller gave up before the batch was closed";
inline constexpr std::string_view kBatcherGone =
    "the batcher is gone, and the batch was not closed";

// The memory of the items is of these streams: it is given out again to nobody who comes before
// what the calling code has given to devices.
void keep_until_read(const Caller& caller, const std::vector<Streams>& streams);
// The calling code comes after what has made the items.
void join_items(const Caller& caller, const std::vector<std::shared_ptr<const StreamMarks>>& marks);

// Why an item is in no batch.
[[nodiscard]] Error not_collected(const Caller& caller, std::string_view why);

}  // namespace detail

// Collects items of many calls, runs them together and answers each: for functions that compute
// many results in hardly more time than one, and for steps that need something of everybody.
//
//   class Policy {
//    public:
//     explicit Policy(CallContext& call)                     // .constructor<CallContext&>()
//         : batcher_(call, {.size = 16, .delay = 5ms},
//                    [this](std::vector<torch::Tensor> states) { return act(states); }) {}
//     Future<int64_t> action(const torch::Tensor& state) { return batcher_.add(state); }
//     …
//   };
//
// Items keep the order in which they arrived. A batch is closed when it is full, when its delay has
// passed, or by a flush; closed batches run in the order in which they were closed, one after
// another, whatever they wait for, each as an execution of its own that may park. A batch whose
// first item was added by a method runs in the monitor of that method's value: it may use the
// value's members as a method does. An item whose call is given up, by a time-out or because its
// caller is lost, leaves a batch that is not closed. A rule "everybody, in rounds" is a batch of
// that size without delay: an item then waits for as long as somebody is missing, or its time-out.
//
// A body that throws gives each of its items the error; so does one that returns another number of
// results than it was given items. The calls of the body are recorded in the autograd context in
// which all of its items were added; if they were added in different ones, in none. A gradient that
// would have to flow from one context into another fails its pass.
//
// A handle: copies name the same batcher. When the last one is gone, items of a batch that is not
// closed fail with `cancelled`. The objects that the body refers to must live until every future
// that was given is complete; a value lives so long if its methods return them.
template <class In, class Out>
class Batcher {
 public:
  // Results in the order of the items. May park.
  using Body = std::function<std::vector<Out>(std::vector<In>)>;

  // Empty; only to be assigned to.
  Batcher() = default;

  // `calls`: the worker, or the call being served. Throws std::invalid_argument for options that
  // cannot be.
  Batcher(const Calls& calls, BatchOptions options, Body body)
      : owner_(std::make_shared<const Owner>(calls.caller(), options, std::move(body))) {}

  // The item's result, or the error of its batch. Never parks.
  [[nodiscard]] Future<Out> add(In item) const {
    State& state = *owner_->state;
    const std::shared_ptr<NodeStrand>& strand = state.caller->strand();
    auto answer = std::make_shared<FutureState<Out>>(strand, CausalId{});
    // The strand comes to this before it comes to the end of the execution.
    Execution* const adder = strand->running_or_null();
    const bool shielded = adder != nullptr && call_bounds(*adder).shielded;
    RecordedIn context = adder != nullptr && !shielded ? adder->context : nullptr;
    strand->post([state = owner_->state, adder, context = std::move(context), shielded,
                  marks = strand->mark_streams(), streams = StreamSet::current(strand->devices()),
                  item = std::move(item), answer]() mutable {
      answer->complete_by([&] {
        state->take(std::move(item), answer,
                    {adder, std::move(context), shielded, std::move(marks), std::move(streams)});
      });
    });
    return Future<Out>(answer);
  }

  // Runs what has been added so far, full or not. Never parks.
  void flush() const {
    owner_->state->caller->strand()->post([state = owner_->state] { state->close(); });
  }

 private:
  struct Batch {
    std::vector<In> items;
    std::vector<std::shared_ptr<FutureState<Out>>> answers;  // by position
    std::shared_ptr<Monitor> monitor;
    uint32_t depth = 0;
    RecordedIn context;  // of all items; null: of none, or of several
    // Of those that added the items: what these are made of, and the streams that own their memory.
    std::vector<std::shared_ptr<const StreamMarks>> marks;
    std::vector<Streams> streams;
  };

  // Null for a thread that is not registered; and what it was recorded in when it added.
  struct Adder {
    Execution* execution;
    RecordedIn context;
    bool shielded = false;
    std::shared_ptr<const StreamMarks> marks;  // null: it uses no devices
    Streams streams;                           // that it adds from
  };

  // Belongs to the strand, but for `caller` and what `perform` reads.
  struct State : std::enable_shared_from_this<State> {
    State(std::shared_ptr<const Caller> of, BatchOptions given, Body does)
        : caller(std::move(of)), options(given), body(std::move(does)) {
      options.check();
      NodeStrand& strand = *caller->strand();
      const CausalId id = strand.running().next_id();
      source = strand.make_execution(id, "batcher");
      source->set_stream(strand.running().stream_of(id));
    }

    using Answer = std::shared_ptr<FutureState<Out>>;
    // An item of the batch that is not closed, what it is made of, and the streams that own its
    // memory.
    struct Added {
      In item;
      Answer answer;
      std::shared_ptr<const StreamMarks> marks;
      Streams streams;
    };
    void take(In item, const Answer& answer, const Adder& adder);
    void take_back(uint64_t number);
    [[nodiscard]] std::shared_ptr<Batch> take_open();
    void close();
    void run_next();
    [[nodiscard]] Result<std::vector<Out>> perform(Batch& batch) const;
    void abandon();

    const std::shared_ptr<const Caller> caller;
    const BatchOptions options;
    const Body body;
    std::shared_ptr<Execution> source;  // names the batches
    Batch open;                         // without its items
    std::map<uint64_t, Added> added;    // these, as they came
    uint64_t next_number = 0;
    DeadlineId delay;  // of the open batch
    std::deque<std::shared_ptr<Batch>> closed;
    bool running = false;
  };

  // The part that all copies share.
  struct Owner {
    Owner(std::shared_ptr<const Caller> caller, BatchOptions options, Body body)
        : state(std::make_shared<State>(std::move(caller), options, std::move(body))) {}
    ~Owner() {
      state->caller->strand()->post([state = state] { state->abandon(); });
    }
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    const std::shared_ptr<State> state;
  };

  std::shared_ptr<const Owner> owner_;
};

template <class In, class Out>
void Batcher<In, Out>::State::take(In item, const Answer& answer, const Adder& by) {
  const uint64_t number = next_number++;
  if (Execution* const adder = by.execution; adder != nullptr) {
    if (adder->given_up && !by.shielded)
      return answer->complete(detail::not_collected(*caller, detail::kCallerGaveUp));
    if (added.empty()) open.monitor = adder->monitor;
    // The body's calls are nested as deeply as its waiters, for which they never wait.
    open.depth = std::max(open.depth, adder->depth);
    // Only of a call being served anybody gives up.
    if (adder->depth > 0 && !by.shielded)
      adder->when_given_up.push_back([weak = this->weak_from_this(), number] {
        if (const auto state = weak.lock()) state->take_back(number);
      });
  }
  if (added.empty())
    open.context = by.context;
  else if (open.context && !(by.context && *by.context == *open.context))
    open.context = nullptr;
  added.emplace(number, Added{std::move(item), answer, by.marks, by.streams});
  if (added.size() == options.size) return close();
  if (added.size() > 1 || !options.delay) return;
  // The batcher may be gone by then: nothing of it may die with a table of the strand.
  delay = caller->call_at(caller->when_passed(*options.delay), [weak = this->weak_from_this()] {
    if (const auto state = weak.lock()) state->close();
  });
}

template <class In, class Out>
void Batcher<In, Out>::State::take_back(uint64_t number) {
  auto taken = added.extract(number);
  if (taken.empty()) return;
  const Answer answer = taken.mapped().answer;
  caller->strand()->let_go(std::make_shared<In>(std::move(taken.mapped().item)));
  if (added.empty()) {
    caller->take_back(std::exchange(delay, {}));
    open = {};
  }
  answer->complete(detail::not_collected(*caller, detail::kCallerGaveUp));
}

// The batch that is not closed, with its items; the next one begins.
template <class In, class Out>
auto Batcher<In, Out>::State::take_open() -> std::shared_ptr<Batch> {
  caller->take_back(std::exchange(delay, {}));
  const auto batch = std::make_shared<Batch>(std::exchange(open, {}));
  for (auto& [number, one] : std::exchange(added, {})) {
    batch->items.push_back(std::move(one.item));
    batch->answers.push_back(std::move(one.answer));
    if (one.marks == nullptr) continue;
    batch->marks.push_back(std::move(one.marks));
    batch->streams.push_back(std::move(one.streams));
  }
  return batch;
}

template <class In, class Out>
void Batcher<In, Out>::State::close() {
  if (added.empty()) return;
  closed.push_back(take_open());
  run_next();
}

template <class In, class Out>
void Batcher<In, Out>::State::run_next() {
  if (running || closed.empty()) return;
  running = true;
  const std::shared_ptr<Batch> batch = std::move(closed.front());
  closed.pop_front();
  const CausalId id = source->next_id();
  caller->strand()->run_on_stack(
      {id, "batch", batch->monitor, batch->depth, batch->context, source->stream_of(id)},
      [state = this->shared_from_this(), batch] {
        detail::join_items(*state->caller, batch->marks);
        auto outcome = std::make_shared<Result<std::vector<Out>>>(state->perform(*batch));
        auto made = state->caller->strand()->mark_streams();
        detail::keep_until_read(*state->caller, batch->streams);
        state->caller->strand()->post(
            [state, batch, made = std::move(made), outcome = std::move(outcome)]() mutable {
              for (size_t i = 0; i < batch->answers.size(); ++i) {
                batch->answers[i]->made_by(made);
                batch->answers[i]->complete_by([&] {
                  batch->answers[i]->complete(outcome->ok() ? Result<Out>(outcome->value()[i])
                                                            : Result<Out>(outcome->error()));
                });
              }
              state->caller->strand()->let_go(std::move(outcome));
              state->running = false;
              state->run_next();
            });
      });
}

template <class In, class Out>
Result<std::vector<Out>> Batcher<In, Out>::State::perform(Batch& batch) const {
  const size_t count = batch.items.size();
  const std::string& worker = caller->strand()->name();
  Result<std::vector<Out>> results =
      run_user_code(worker, "batch", [&] { return body(std::move(batch.items)); });
  if (results.ok() && results.value().size() != count)
    return Error{.kind = ErrorKind::remote_exception,
                 .text = "the body of a batch returned " + std::to_string(results.value().size()) +
                         " results for " + std::to_string(count) + " items: return one for each",
                 .worker = worker,
                 .function = "batch"};
  return results;
}

template <class In, class Out>
void Batcher<In, Out>::State::abandon() {
  const std::shared_ptr<Batch> dropped = take_open();
  for (const Answer& answer : dropped->answers)
    answer->complete(detail::not_collected(*caller, detail::kBatcherGone));
  caller->strand()->let_go(std::make_shared<std::vector<In>>(std::move(dropped->items)));
  caller->strand()->release_later(dropped);
}

}  // namespace rehearsal
