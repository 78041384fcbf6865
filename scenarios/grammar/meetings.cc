#include "scenarios/grammar/meetings.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/api/process_group.h"
#include "scenarios/grammar/functions.h"
#include "scenarios/grammar/outside.h"
#include "scenarios/grammar/visits.h"
#include "scenarios/storm/dice.h"

namespace rehearsal::grammar {
namespace {

using storm::Dice;

std::vector<std::string> some_workers(const WorkerAccess& worker, Dice& dice) {
  std::vector<std::string> names;
  for (const WorkerInfo& one : worker.workers())
    if (dice.happens(70)) names.push_back(one.name);
  if (names.empty()) names.push_back(worker.workers().front().name);
  return names;
}

bool takes_part(const WorkerAccess& worker, const std::vector<std::string>& names) {
  return std::ranges::find(names, worker.name()) != names.end();
}

// A number, and the meeting that it is brought to.
struct Brought {
  uint64_t what = 0;
  int64_t number = 0;
  friend void describe(Brought& brought, auto&& fields) { fields(brought.what, brought.number); }
};

// A worker that has come back may be in another meeting.
void expect_here(uint64_t what, uint64_t theirs) {
  if (what != theirs)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "another worker is in another meeting",
                    .worker = {}});
}

// The number that a member brings to something.
int64_t brought(uint64_t what, uint64_t member) {
  return static_cast<int64_t>(mix(what, member) % 50);
}

void gather_numbers(const Worker& worker, const std::vector<std::string>& names, uint64_t what,
                    Duration patience = kPatience) {
  const auto given = worker.all_gather(Brought{what, brought(what, hash_text(worker.name()))},
                                       names, Timeout(patience));
  expect("the size of a gathering", static_cast<int64_t>(names.size()),
         static_cast<int64_t>(given.size()));
  for (const std::string& name : names) {
    expect_here(what, given.at(name).what);
    expect("a gathered number", brought(what, hash_text(name)), given.at(name).number);
  }
}

// One group at one of its members. All members draw the same.
class Together {
 public:
  Together(const WorkerAccess& worker, const std::vector<std::string>& names, uint64_t word,
           Duration patience = kPatience)
      : group_(worker, names, {.timeout = patience}), dice_(Seed{word}, hash_text("together")) {
    const at::Tensor mine = at::full({1}, static_cast<int64_t>(word), at::TensorOptions(at::kLong));
    std::vector<at::Tensor> all;
    for (uint32_t rank = 0; rank < group_.size(); ++rank) all.push_back(at::zeros_like(mine));
    group_.all_gather(all, mine);
    for (const at::Tensor& theirs : all)
      expect_here(word, static_cast<uint64_t>(theirs.item<int64_t>()));
  }

  // One operation, drawn anew; `needs_all`: one that ends at nobody before all have come.
  void go_on(bool needs_all = false) {
    using Operation = void (Together::*)();
    static constexpr Operation kOperations[] = {&Together::all_reduce, &Together::all_gather,
                                                &Together::all_to_all, &Together::reduce_scatter,
                                                &Together::barrier,    &Together::broadcast,
                                                &Together::reduce,     &Together::gather,
                                                &Together::scatter,    &Together::send};
    constexpr uint64_t kNeedAll = 5;
    what_ = dice_.word();
    later_ = dice_.happens(60);
    size_ = dice_.happens(85) ? 1 + static_cast<int64_t>(dice_.draw(6)) : 20'000;
    root_ = static_cast<uint32_t>(dice_.draw(group_.size()));
    (this->*kOperations[dice_.draw(needs_all ? kNeedAll : std::size(kOperations))])();
  }

  void end() {
    for (const auto& [done, check] : under_way_) {
      done.wait();
      check();
    }
    under_way_.clear();
  }

 private:
  using Check = std::function<void()>;

  template <class Later, class Now>
  void run(const Later& later, const Now& now, Check check) {
    if (later_) {
      under_way_.emplace_back(later(), std::move(check));
      return;
    }
    now();
    check();
  }

  [[nodiscard]] at::Tensor filled(int64_t value) const {
    return at::full({size_}, value, at::TensorOptions(at::kLong));
  }
  [[nodiscard]] at::Tensor mine() const { return filled(brought(what_, group_.rank())); }
  [[nodiscard]] std::vector<at::Tensor> empty_ones() const {
    std::vector<at::Tensor> all;
    for (uint32_t rank = 0; rank < group_.size(); ++rank) all.push_back(filled(-1));
    return all;
  }
  // From this rank to each, as all of them know.
  [[nodiscard]] int64_t sent(uint32_t from, uint32_t to) const {
    return brought(mix(what_, from), to);
  }
  [[nodiscard]] std::vector<at::Tensor> for_each_rank(uint32_t from) const {
    std::vector<at::Tensor> all;
    for (uint32_t rank = 0; rank < group_.size(); ++rank) all.push_back(filled(sent(from, rank)));
    return all;
  }
  static void expect_filled(const std::string& what, int64_t value, const at::Tensor& tensor) {
    expect(what, value * tensor.numel(), tensor.sum().item<int64_t>());
    expect(what, value, tensor.max().item<int64_t>());
  }
  [[nodiscard]] int64_t sum_of_all() const {
    int64_t sum = 0;
    for (uint32_t rank = 0; rank < group_.size(); ++rank) sum += brought(what_, rank);
    return sum;
  }
  [[nodiscard]] int64_t most_of_all() const {
    int64_t most = 0;
    for (uint32_t rank = 0; rank < group_.size(); ++rank)
      most = std::max(most, brought(what_, rank));
    return most;
  }

  void all_reduce() {
    const at::Tensor tensor = mine();
    const bool sums = what_ % 2 == 0;
    const ReduceOp op = sums ? ReduceOp::sum : ReduceOp::max;
    run([&] { return group_.all_reduce_async(tensor, op); }, [&] { group_.all_reduce(tensor, op); },
        [tensor, expected = sums ? sum_of_all() : most_of_all()] {
          expect_filled("all_reduce", expected, tensor);
        });
  }
  void broadcast() {
    const at::Tensor tensor = mine();
    run([&] { return group_.broadcast_async(tensor, root_); },
        [&] { group_.broadcast(tensor, root_); },
        [tensor, expected = brought(what_, root_)] {
          expect_filled("broadcast", expected, tensor);
        });
  }
  void reduce() {
    const at::Tensor tensor = mine();
    const int64_t expected = group_.rank() == root_ ? sum_of_all() : brought(what_, group_.rank());
    run([&] { return group_.reduce_async(tensor, root_); }, [&] { group_.reduce(tensor, root_); },
        [tensor, expected] { expect_filled("reduce", expected, tensor); });
  }
  void all_gather() {
    const std::vector<at::Tensor> outputs = empty_ones();
    run([&] { return group_.all_gather_async(outputs, mine()); },
        [&] { group_.all_gather(outputs, mine()); },
        [outputs, what = what_] {
          for (size_t rank = 0; rank < outputs.size(); ++rank)
            expect_filled("all_gather", brought(what, rank), outputs[rank]);
        });
  }
  void gather() {
    const std::vector<at::Tensor> outputs =
        group_.rank() == root_ ? empty_ones() : std::vector<at::Tensor>();
    run([&] { return group_.gather_async(outputs, mine(), root_); },
        [&] { group_.gather(outputs, mine(), root_); },
        [outputs, what = what_] {
          for (size_t rank = 0; rank < outputs.size(); ++rank)
            expect_filled("gather", brought(what, rank), outputs[rank]);
        });
  }
  void scatter() {
    const at::Tensor output = filled(-1);
    const std::vector<at::Tensor> inputs =
        group_.rank() == root_ ? for_each_rank(root_) : std::vector<at::Tensor>();
    run([&] { return group_.scatter_async(output, inputs, root_); },
        [&] { group_.scatter(output, inputs, root_); },
        [output, expected = sent(root_, group_.rank())] {
          expect_filled("scatter", expected, output);
        });
  }
  void all_to_all() {
    const std::vector<at::Tensor> outputs = empty_ones();
    const std::vector<at::Tensor> inputs = for_each_rank(group_.rank());
    std::vector<int64_t> expected;
    for (uint32_t rank = 0; rank < group_.size(); ++rank)
      expected.push_back(sent(rank, group_.rank()));
    run([&] { return group_.all_to_all_async(outputs, inputs); },
        [&] { group_.all_to_all(outputs, inputs); },
        [outputs, expected] {
          for (size_t rank = 0; rank < outputs.size(); ++rank)
            expect_filled("all_to_all", expected[rank], outputs[rank]);
        });
  }
  void reduce_scatter() {
    const at::Tensor output = filled(-1);
    const std::vector<at::Tensor> inputs = for_each_rank(group_.rank());
    int64_t expected = 0;
    for (uint32_t rank = 0; rank < group_.size(); ++rank) expected += sent(rank, group_.rank());
    run([&] { return group_.reduce_scatter_async(output, inputs); },
        [&] { group_.reduce_scatter(output, inputs); },
        [output, expected] { expect_filled("reduce_scatter", expected, output); });
  }
  // From the root to the next one; the others do nothing.
  void send() {
    const uint32_t to = (root_ + 1) % group_.size();
    const auto tag = static_cast<uint32_t>(what_ % 2);
    if (to == root_) return;
    if (group_.rank() == root_) {
      const at::Tensor tensor = mine();
      run([&] { return group_.send_async(tensor, to, tag); }, [&] { group_.send(tensor, to, tag); },
          [] {});
    } else if (group_.rank() == to) {
      const at::Tensor tensor = filled(-1);
      run([&] { return group_.recv_async(tensor, root_, tag); },
          [&] { group_.recv(tensor, root_, tag); },
          [tensor, expected = brought(what_, root_)] { expect_filled("recv", expected, tensor); });
    }
  }
  void barrier() {
    run([&] { return group_.barrier_async(); }, [&] { group_.barrier(); }, [] {});
  }

  const ProcessGroup group_;
  Dice dice_;
  std::vector<std::pair<Future<Unit>, Check>> under_way_;
  // Of the present operation.
  uint64_t what_ = 0;
  bool later_ = false;
  int64_t size_ = 1;
  uint32_t root_ = 0;
};

// Two groups that overlap go on by turns.
void work_in_groups(const WorkerAccess& worker, Dice& dice) {
  std::vector<std::vector<std::string>> members;
  std::vector<uint64_t> words;
  for (uint64_t left = 1 + dice.draw(2); left > 0; --left) {
    members.push_back(some_workers(worker, dice));
    words.push_back(dice.word());
  }
  const uint64_t rounds = 1 + dice.draw(4);
  std::vector<Together> mine;
  for (size_t i = 0; i < members.size(); ++i)
    if (takes_part(worker, members[i])) mine.emplace_back(worker, members[i], words[i]);
  for (uint64_t round = 0; round < rounds; ++round)
    for (Together& together : mine) together.go_on();
  for (Together& together : mine) together.end();
}

// Until another worker's main has been served so often.
void wait_for_visit(const Worker& worker, int64_t visits) {
  std::chrono::microseconds pause(100);
  for (std::chrono::microseconds waited(0); worker.state<Visits>().ended < visits;
       waited += pause, pause = std::min(2 * pause, std::chrono::microseconds(1'000'000))) {
    if (waited > kPatience)
      throw RpcError({.kind = ErrorKind::timeout, .text = "nobody works here", .worker = {}});
    worker.sleep(pause);
  }
}

// Each main has another worker do it, by a function there. All have come here before, and go on
// when the function has ended that works here: it waits for others, and must not keep out what
// their terms wait for; and groups of the same workers are made in one order.
void work_elsewhere(const Worker& worker, Dice& dice) {
  const int64_t visits = ++worker.state<Visits>().begun;
  worker.barrier({}, Timeout(kPatience));
  const uint64_t workers = worker.workers().size();
  const auto other = static_cast<uint32_t>((worker.id().value + dice.draw(workers)) % workers);
  worker.rpc_sync(WorkerId{other}, &work_there, static_cast<int64_t>(dice.word() / 2));
  wait_for_visit(worker, visits);
}

}  // namespace

void work_there(CallContext& context, int64_t word) {
  Dice dice(Seed{static_cast<uint64_t>(word)}, hash_text("work there"));
  struct Visit {
    Visits& visits;
    ~Visit() { ++visits.ended; }
  } visit{context.state<Visits>()};
  work_in_groups(context, dice);
}

namespace {

// So long after a meeting of all one comes to the next, and so soon the others give up.
constexpr auto kLate = std::chrono::seconds(160);
constexpr auto kGroupPatience = std::chrono::seconds(60);

// Throws RpcError, timeout or cancelled: nothing ends well in which one is missing.
void wait_for_one_that_is_late(const Worker& worker, const std::vector<std::string>& names,
                               bool is_late, uint64_t word) {
  Dice dice(Seed{word}, hash_text("one that is late"));
  const bool in_group = dice.happens(50);
  const std::chrono::microseconds patience(1 + dice.draw(uint64_t{1} << dice.draw(17)));
  const uint64_t what = dice.word();
  if (!in_group) {
    if (is_late) worker.sleep(kLate);
    return gather_numbers(worker, names, what, patience);
  }
  Together together(worker, names, what, kGroupPatience);
  if (is_late) worker.sleep(kLate);
  together.go_on(/*needs_all=*/true);
  together.end();
}

// One of the members comes when the others have given up. All are here before.
void miss_one(const Worker& worker, Dice& dice) {
  const std::vector<std::string> names = some_workers(worker, dice);
  const std::string late = names[dice.draw(names.size())];
  const uint64_t word = dice.word();
  worker.barrier({}, Timeout(kPatience));
  if (names.size() < 2 || !takes_part(worker, names)) return;
  try {
    wait_for_one_that_is_late(worker, names, worker.name() == late, word);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout && error.kind() != ErrorKind::cancelled) throw;
    return;
  }
  // A pause or a partition that is long enough may have kept the others for as long.
  throw RpcError({.kind = ErrorKind::timeout,
                  .text = "the others were to give up before '" + late + "' came",
                  .worker = late});
}

void go_to(const Worker& worker, Seed seed, int64_t number) {
  Dice dice(seed, mix(hash_text("meeting"), static_cast<uint64_t>(number)));
  for (uint64_t left = dice.draw(4); left > 0; --left) {
    const uint64_t kind = dice.draw(6);
    if (kind == 0) {
      work_in_groups(worker, dice);
      continue;
    }
    if (kind == 3) {
      work_elsewhere(worker, dice);
      continue;
    }
    if (kind == 5) {
      miss_one(worker, dice);
      continue;
    }
    const std::vector<std::string> names = some_workers(worker, dice);
    const uint64_t what = dice.word();
    if (!takes_part(worker, names)) continue;
    if (kind == 1)
      gather_numbers(worker, names, what);
    else if (kind == 4)
      meet_by_c10d(worker, names, what);
    else
      worker.barrier(names, Timeout(kPatience));
  }
}

}  // namespace

void meet(const Worker& worker, Seed seed, int64_t number) {
  try {
    go_to(worker, seed, number);
  } catch (const RpcError& error) {
    // Those in another meeting give values of other types, and do other things.
    if (error.kind() != ErrorKind::bad_arguments) throw;
    throw Elsewhere(error.what());
  }
}

}  // namespace rehearsal::grammar
