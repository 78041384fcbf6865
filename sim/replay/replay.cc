#include "sim/replay/replay.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/base/mutants.h"
#include "core/fibers/inspection.h"
#include "core/node/hello.h"
#include "core/node/node.h"
#include "record/code_names.h"
#include "record/digest.h"
#include "sim/hunt/noted_throws.h"
#include "sim/replay/replay_runtime.h"
#include "sim/world/event_lines.h"
#include "sim/world/heap_pool.h"
#include "sim/world/torch_settings.h"

namespace rehearsal::sim {
namespace {

using record::Item;
using record::Order;

// The words for an act, by its digest.
std::string act_text(uint64_t digest) {
  const auto kind = static_cast<uint8_t>(digest >> 56);
  if (kind < kEventKinds) return "event " + std::string(name_of(static_cast<EventKind>(kind)));
  return record::kind_text(digest);
}

// Gives a node what a record holds, and compares.
class Replayer final : private Trace, private Transport, private fibers::Inspected {
 public:
  Replayer(const record::Record& record, const Program& program, const ReplayOptions& options);
  ReplayReport run();

 private:
  // For a debugger.
  [[nodiscard]] std::string describe_workers() const override;
  [[nodiscard]] std::vector<fibers::StackView> stacks() const override {
    const NodeOptions& node = record_.header.node;
    return runtime_->stacks(worker_name(node.id), node_->waits(), node.names);
  }

  // The acts of the node.
  void on_event(const Event& event) override;
  void open(WorkerId peer) override { act(record::digest_of(Order::open, peer), peer); }
  void send(WorkerId peer, Frame frame) override {
    act(record::digest_of(Order::send, peer, record::hash_of(frame)), peer);
  }
  // These never come: a worker with devices is not recorded.
  void send_on(WorkerId) override {}
  void break_link(WorkerId, const Error&) override {}
  void close(WorkerId peer, const Error& reason) override {
    act(record::digest_of(Order::close, peer, hash_text(to_string(reason))), peer);
  }
  [[nodiscard]] uint64_t queued_bytes(WorkerId) const override;
  void stop() override { act(record::digest_of(Order::stop, kNoPeer), kNoPeer); }

  void note_throw(const Error& error);

  // The inputs of the node. Each returns the misfit, if there is one.
  using Misfit = std::optional<std::string>;
  Misfit give(const record::Posted& input);
  Misfit give(const record::FrameReceived& input);
  Misfit give(const record::PeerUp& input);
  Misfit give(const record::PeerLost& input);
  Misfit give(const record::Drained& input);
  Misfit give(const record::PeerRefused& input);
  Misfit give(const record::Fired& input);
  Misfit give(const record::Aborted& input);
  Misfit give(const record::Ended& input);
  Misfit give(const record::Read&) { return "the record has read the clock once more"; }
  Misfit give(const record::Outcome&) { return "the record has an outcome of nothing"; }

  void play_entry();
  void expect_outcome();
  void compare_outcome();
  void act(uint64_t digest, WorkerId peer, const Event* event = nullptr);
  void diverge(std::string text) const;
  [[nodiscard]] std::optional<uint64_t> read(record::Read::Kind kind) const;
  [[nodiscard]] Instant strand_now() const;
  [[nodiscard]] std::string worker_name(WorkerId worker) const;
  [[nodiscard]] std::string in_words(const Item& input) const;

  const record::Record& record_;
  const ReplayOptions options_;
  HeapPool pool_;
  const std::shared_ptr<ReplayRuntime> runtime_;
  std::unique_ptr<Node> node_;
  std::optional<Status> result_;

  mutable size_t cursor_ = 0;  // the next item
  bool over_ = false;          // nothing that happens now is in the record
  // Of the present entry.
  const Item* input_ = nullptr;
  const record::Outcome* outcome_ = nullptr;  // null: the record stops in the middle of it
  size_t acts_ = 0;
  mutable std::optional<Instant> now_;
  mutable Instant last_now_{};
  mutable std::optional<Instant> first_now_;
  Hash128 fingerprint_;  // of the events so far
  uint64_t events_ = 0;

  mutable ReplayReport report_;
  NotedThrows throws_;
};

Replayer::Replayer(const record::Record& record, const Program& program,
                   const ReplayOptions& options)
    : record_(record),
      options_(options),
      runtime_(std::make_shared<ReplayRuntime>([this] { return strand_now(); })) {
  at::set_num_threads(record.header.torch_threads);
  NodeOptions node = record.header.node;
  node.exception_witness = [this](const Error& error) { note_throw(error); };
  node_ = std::make_unique<Node>(node, program,
                                 Node::Environment{.runtime = runtime_,
                                                   .executions = runtime_.get(),
                                                   .transport = this,
                                                   .trace = this,
                                                   .checkpoints = runtime_.get()});
  for (const Item& item : record.items)
    if (const auto* posted = std::get_if<record::Posted>(&item)) runtime_->expect(*posted);
  report_.woke_beside_threads = runtime_->woke_beside_threads();
}

ReplayReport Replayer::run() {
  const fibers::Inspection inspection(*this);
  runtime_->start_main(node_->main_execution(), [this] { result_.emplace(node_->run_main()); });
  while (cursor_ < record_.items.size() && !report_.divergence) play_entry();
  const bool stopped = !report_.divergence && !report_.ended;
  over_ = true;
  if (stopped) runtime_->run_out();
  runtime_->finish(
      [this] {
        if (!node_->ended()) node_->kill();
      },
      [this] { node_->let_go(); });
  report_.census_at_end = node_->census_at_end();
  node_.reset();
  return report_;
}

void Replayer::note_throw(const Error& error) {
  constexpr size_t kThrowsMax = 16;
  throws_.became(error);
  const ReplayedThrow thrown{error.text, throws_.place_of(error)};
  std::vector<ReplayedThrow>& known = report_.throws;
  if (thrown.place.empty() || known.size() == kThrowsMax) return;
  if (std::find(known.begin(), known.end(), thrown) == known.end()) known.push_back(thrown);
}

void Replayer::play_entry() {
  input_ = &record_.items[cursor_++];
  expect_outcome();
  now_.reset();
  acts_ = 0;
  replay_entry(report_.entries);
  if (options_.on_entry) options_.on_entry();
  const Misfit misfit = std::visit([this](const auto& input) { return give(input); }, *input_);
  if (misfit) return diverge(*misfit);
  if (!std::holds_alternative<record::Ended>(*input_)) compare_outcome();
  ++report_.entries;
}

void Replayer::expect_outcome() {
  size_t at = cursor_;
  while (at < record_.items.size() && std::holds_alternative<record::Read>(record_.items[at])) ++at;
  outcome_ = at < record_.items.size() ? std::get_if<record::Outcome>(&record_.items[at]) : nullptr;
}

void Replayer::compare_outcome() {
  if (outcome_ == nullptr || report_.divergence) return;
  if (acts_ < outcome_->digests.size())
    return diverge("the record goes on with " + act_text(outcome_->digests[acts_]) +
                   ", and nothing happens here");
  if (std::holds_alternative<record::Read>(record_.items[cursor_]))
    return diverge("the record has read the clock, and nobody reads it here");
  ++cursor_;
}

std::string Replayer::describe_workers() const {
  std::string text = "event " + std::to_string(events_) + ", before entry " +
                     std::to_string(report_.entries) + " of the record\n  " +
                     worker_name(record_.header.node.id) + ":";
  if (node_ == nullptr) return text + " has ended\n";
  std::string stacks_text;
  for (const fibers::StackView& view : stacks())
    stacks_text += (stacks_text.empty() ? " " : "; ") + view.label + " " + view.state;
  return text + (stacks_text.empty() ? " nothing runs" : stacks_text) + "\n";
}

// ---- what the node does -----------------------------------------------------

void Replayer::on_event(const Event& event) {
  fibers::inspect_event(++events_);
  if (over_) return;
  act(record::digest_of(event), event.peer, &event);
  const Instant when(last_now_ - first_now_.value_or(last_now_));
  if (options_.trace != nullptr) {
    Event timed = event;
    timed.when = when;
    options_.trace->on_event(timed);
  }
  if (options_.lines == nullptr) return;
  const NodeOptions& node = record_.header.node;
  fingerprint_ = mix(fingerprint_, record::digest_of(event));
  options_.lines->write({event, {node.id, 0}, node.incarnation, when}, fingerprint_);
}

void Replayer::act(uint64_t digest, WorkerId peer, const Event* event) {
  if (over_ || outcome_ == nullptr || report_.divergence || report_.ended) return;
  const std::vector<uint64_t>& expected = outcome_->digests;
  if (acts_ < expected.size() && expected[acts_] == digest) {
    ++acts_;
    ++report_.acts;
    return;
  }
  std::string happens = act_text(digest);
  if (peer != kNoPeer) happens += " with " + worker_name(peer);
  if (event != nullptr) {
    if (!event->text.empty()) happens += " '" + std::string(event->text) + "'";
    if (event->kind == EventKind::note) happens += " = " + std::string(event->value);
  }
  const bool same_kind = acts_ < expected.size() && expected[acts_] >> 56 == digest >> 56;
  diverge((acts_ == expected.size() ? "the record has nothing more"
           : same_kind              ? "the record has another " + act_text(expected[acts_])
                                    : "the record has " + act_text(expected[acts_])) +
          " where the replay has " + happens);
}

void Replayer::diverge(std::string text) const {
  if (report_.divergence) return;
  if (report_.woke_beside_threads)
    text +=
        "; the worker's executions woke each other by primitives of Boost.Fiber on several "
        "threads, and the record does not have the whole of their order: one that is recorded "
        "with REHEARSAL_WORKER_THREADS=0 has one thread for them";
  report_.divergence = Divergence{
      report_.entries, input_ != nullptr ? in_words(*input_) : "the start", std::move(text)};
}

// ---- what it reads ----------------------------------------------------------

std::optional<uint64_t> Replayer::read(record::Read::Kind kind) const {
  const auto* next =
      cursor_ < record_.items.size() ? std::get_if<record::Read>(&record_.items[cursor_]) : nullptr;
  if (next != nullptr && next->kind == kind) {
    ++cursor_;
    return next->value;
  }
  if (outcome_ != nullptr) diverge("the replay reads what the record has not read");
  return std::nullopt;
}

Instant Replayer::strand_now() const {
  if (now_) return *now_;
  const auto value = read(record::Read::Kind::now);
  now_ = value ? Instant(Duration(static_cast<Duration::rep>(*value))) : last_now_;
  last_now_ = *now_;
  if (!first_now_) first_now_ = now_;
  return *now_;
}

uint64_t Replayer::queued_bytes(WorkerId) const {
  return read(record::Read::Kind::queued_bytes).value_or(0);
}

// ---- what it is given -------------------------------------------------------

Replayer::Misfit Replayer::give(const record::Posted& input) {
  std::optional<Task> task = runtime_->take(input);
  if (!task) return "it enters the strand in the record, and does not here";
  runtime_->on_strand(*task);
  runtime_->drop_task({record::Source::Kind::entry_closure, report_.entries}, std::move(*task));
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::FrameReceived& input) {
  Frame frame{.header = input.header, .body = nullptr};
  if (input.has_body) {
    auto body = std::make_shared<FrameBody>();
    body->envelope = input.envelope;
    for (const record::FrameReceived::Part& part : input.segments) {
      Segment segment = pool_.take(part.bytes.size(), part.use);
      if (!part.bytes.empty()) std::memcpy(segment.data, part.bytes.data(), part.bytes.size());
      body->segments.push_back(std::move(segment));
    }
    frame.body = std::move(body);
  }
  runtime_->on_strand([&] { node_->sink().on_frame(input.peer, std::move(frame)); });
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::PeerUp& input) {
  const Hello hello{input.peer, input.incarnation, std::string(input.greeting), input.position};
  runtime_->on_strand([&] { node_->sink().on_peer_up(hello); });
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::PeerLost& input) {
  runtime_->on_strand(
      [&] { node_->sink().on_peer_lost(input.peer, input.why, input.closed_by_peer); });
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::Drained& input) {
  runtime_->on_strand([&] { node_->sink().on_drained(input.peer); });
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::PeerRefused& input) {
  runtime_->on_strand([&] { node_->sink().on_refused(input.peer, input.refusals); });
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::Fired& input) {
  std::optional<Task> task = runtime_->take_timer(input.timer);
  if (!task) return "this timer is not set here";
  runtime_->on_strand(*task);
  runtime_->drop_task({record::Source::Kind::timer_closure, input.timer}, std::move(*task));
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::Aborted& input) {
  runtime_->on_strand([&] { node_->abort(input.why); });
  return std::nullopt;
}

Replayer::Misfit Replayer::give(const record::Ended& input) {
  runtime_->run_out();
  if (!result_) return "the worker's main has not returned here";
  const Status& result = *result_;
  std::optional<Error> failure = result.ok() ? std::nullopt : std::optional(Status(result).error());
  if (failure) failure->trace.clear();  // addresses: it is not recorded
  if (failure != input.failure)
    return "it ended with " + (input.failure ? to_string(*input.failure) : "success") +
           ", and here with " + (failure ? to_string(*failure) : "success");
  report_.ended = true;
  report_.failure = failure;
  return std::nullopt;
}

// ---- words ------------------------------------------------------------------

std::string Replayer::worker_name(WorkerId worker) const {
  const std::vector<std::string>& names = record_.header.node.names;
  return worker.value < names.size() ? names[worker.value] : std::to_string(worker.value);
}

std::string Replayer::in_words(const Item& input) const {
  struct Words {
    const Replayer& of;
    std::string operator()(const record::Posted& item) const {
      return "a task of " + to_string(item.from);
    }
    std::string operator()(const record::FrameReceived& item) const {
      return "a frame from " + of.worker_name(item.peer);
    }
    std::string operator()(const record::PeerUp& item) const {
      return "the link to " + of.worker_name(item.peer) + " stands";
    }
    std::string operator()(const record::PeerLost& item) const {
      return "the link to " + of.worker_name(item.peer) + " is lost";
    }
    std::string operator()(const record::Drained& item) const {
      return "the link to " + of.worker_name(item.peer) + " has drained";
    }
    std::string operator()(const record::PeerRefused& item) const {
      return of.worker_name(item.peer) + " refuses a connection";
    }
    std::string operator()(const record::Fired& item) const {
      return "timer " + std::to_string(item.timer) + " fires";
    }
    std::string operator()(const record::Aborted&) const { return "the worker is ended"; }
    std::string operator()(const record::Read&) const { return "a reading"; }
    std::string operator()(const record::Outcome&) const { return "an outcome"; }
    std::string operator()(const record::Ended&) const { return "the end of the worker"; }
  };
  return std::visit(Words{*this}, input);
}

std::string arithmetic_of(const std::string& text) {
  const Result<Greeting> greeting = greeting_from_text(text);
  if (!greeting.ok()) return "something unknown";
  const Greeting& known = greeting.value();
  return "LibTorch " + known.libtorch + ", " + known.isa + ", " + std::to_string(known.threads) +
         " thread" + (known.threads == 1 ? "" : "s");
}

}  // namespace

[[gnu::noinline]] void replay_entry(uint64_t entry) {
  // An optimizer that sees a function without effects would leave out its calls.
  asm volatile("" ::"r"(entry));
}

std::optional<std::string> refusal(const record::Record& record) {
  const std::string build = record::build_of_this_process();
  if (record.header.build != build)
    return "was recorded by another build (" + record.header.build + ", this one is " + build +
           "): replay it with the program that recorded it";
  const std::vector<std::string> known = mutant_names();
  for (const std::string& mutant : record.header.node.mutants)
    if (std::find(known.begin(), known.end(), mutant) == known.end())
      return "was recorded without the rule '" + mutant + "', and this build leaves out none of " +
             "that name: replay it with the program that recorded it";
  for (const Item& item : record.items) {
    const auto* posted = std::get_if<record::Posted>(&item);
    if (posted != nullptr && posted->from.kind == record::Source::Kind::stranger)
      return "is of a worker that threads of the program's own have used, and a replay has none";
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const record::Record& record, const Program& program) {
  const record::RecordHeader& header = record.header;
  if (header.node.names != program.names())
    return "was recorded by another program: it has other workers";
  at::set_num_threads(header.torch_threads);
  const std::string& name = header.node.names[header.node.id.value];
  Greeting ours =
      greeting_of_this_process(name, header.node.names.size(), program.registry().describe());
  ours.life = header.node.life;
  ours.dynamic = program.is_dynamic();
  ours.peer_timeout = header.node.peer_timeout;
  const std::string greeting = to_text(ours);
  if (header.greeting != greeting)
    return "was recorded with another program, LibTorch or kind of processor: it computed with " +
           arithmetic_of(header.greeting) + ", this process with " + arithmetic_of(greeting);
  return std::nullopt;
}

ReplayReport replay(const record::Record& record, const Program& program,
                    const ReplayOptions& options) {
  const TorchSettingsKept settings;  // The worker's code may change them.
  return Replayer(record, program, options).run();
}

}  // namespace rehearsal::sim
