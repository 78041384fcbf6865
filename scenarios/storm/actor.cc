#include "scenarios/storm/actor.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <chrono>

namespace rehearsal::storm {
namespace {

constexpr uint64_t kSaves = 0x7361766573;  // distinguishes this draw from those of the steps
constexpr const char* kProgress = "progress";

}  // namespace

bool workers_meet(Seed seed) { return Dice(seed, hash_text("meeting")).happens(30); }

bool is_loss(ErrorKind kind) {
  using enum ErrorKind;
  return kind == peer_lost || kind == fenced || kind == rref_deleted || kind == autograd;
}

Actor::Actor(Worker& worker, Seed seed, std::vector<AutogradContext>& kept, bool recordable)
    : worker_(worker),
      seed_(seed),
      workers_(worker.workers().size()),
      blob_scale_(Dice(seed, hash_text("blobs")).draw(8)),
      kept_(kept),
      recordable_(recordable) {
  publish_rank();
}

void Actor::act(int64_t operations) {
  const int64_t middle = operations / 2;
  const bool saves = Dice(seed_, mix(hash_text(worker_.name()), kSaves)).happens(25);
  const bool meets = workers_meet(seed_);
  for (int64_t step = first_step(middle); step < operations; ++step) {
    if (saves && step == middle) {
      worker_.save_checkpoint(kProgress, step);
      if (first_step(middle) != middle) throw WrongResult("what was saved is not there");
    }
    if (meets && step == middle) meet_all();
    const uint64_t here = mix(hash_text(worker_.name()), static_cast<uint64_t>(step));
    Dice dice(seed_, here);
    places_ = Dice(seed_, mix(here, hash_text("places")));
    try {
      if (worker_.device_count() > 0 && places_.happens(35))
        one_device_operation(dice);
      else
        one_operation(dice);
    } catch (const RpcError& error) {
      if (!is_loss(error.kind())) throw;
      ++lost_;
    }
  }
}

int64_t Actor::first_step(int64_t middle) {
  const std::optional<c10::IValue> saved = worker_.load_checkpoint(kProgress);
  if (!saved) return 0;
  expect("the step that an earlier life has saved", middle, saved->toInt());
  return middle;
}

void Actor::one_operation(Dice& dice) {
  using Operation = void (Actor::*)(Dice&);
  static constexpr Operation kOperations[] = {&Actor::call,
                                              &Actor::call_many,
                                              &Actor::call_failing,
                                              &Actor::create_failing,
                                              &Actor::call_operator,
                                              &Actor::share,
                                              &Actor::share,
                                              &Actor::share_and_forget,
                                              &Actor::create_in_haste,
                                              &Actor::carry_around,
                                              &Actor::carry_around,
                                              &Actor::let_wander,
                                              &Actor::let_wander,
                                              &Actor::shelve,
                                              &Actor::shelve,
                                              &Actor::tie_shelves,
                                              &Actor::move_blob,
                                              &Actor::share_blob,
                                              &Actor::let_go_of_blob,
                                              &Actor::write_in_order,
                                              &Actor::update_slowly,
                                              &Actor::update_from_elsewhere,
                                              &Actor::time_out,
                                              &Actor::read_stream,
                                              &Actor::read_stream,
                                              &Actor::read_stream_ahead,
                                              &Actor::hold_for_a_while,
                                              &Actor::leave_locked,
                                              &Actor::let_a_lease_end,
                                              &Actor::add_to_batches,
                                              &Actor::use_module,
                                              &Actor::be_refused,
                                              &Actor::call_script,
                                              &Actor::send_parcel,
                                              &Actor::take_first,
                                              &Actor::give_up_rest,
                                              &Actor::look_up_rank,
                                              &Actor::publish_while_awaited,
                                              &Actor::keep_account,
                                              &Actor::record_little,
                                              &Actor::propagate,
                                              &Actor::propagate_in_part,
                                              &Actor::propagate_again,
                                              &Actor::propagate_again,
                                              &Actor::propagate_again,
                                              &Actor::propagate_to_layers,
                                              &Actor::propagate_to_layers,
                                              &Actor::propagate_in_time,
                                              &Actor::train,
                                              &Actor::train};
  (this->*kOperations[dice.draw(std::size(kOperations))])(dice);
}

WorkerId Actor::anybody(Dice& dice) const {
  return WorkerId{static_cast<uint32_t>(dice.draw(workers_))};
}

// Elements: one seed's values fit the small lane, another's fill every window, most are between.
int64_t Actor::blob_size(Dice& dice) const {
  const uint64_t least = blob_scale_ == 0 ? 1 : blob_scale_ == 1 ? 128 * 1024 : 16 * 1024;
  return static_cast<int64_t>(least + dice.draw(least));
}

at::Tensor Actor::somewhere(const at::Tensor& tensor) {
  return placed(worker_, places_.word(), tensor);
}

Journey Actor::journey(Dice& dice, int64_t hops_max) const {
  Journey journey;
  journey.word = dice.word();
  journey.hops = static_cast<int64_t>(dice.draw(static_cast<uint64_t>(hops_max) + 1));
  journey.value = static_cast<int64_t>(dice.draw(1000));
  return journey;
}

void Actor::expect(const std::string& what, int64_t expected, int64_t found) {
  if (expected != found)
    throw WrongResult(what + " gave " + std::to_string(found) + ", not " +
                      std::to_string(expected));
  digest_ = mix(digest_, static_cast<uint64_t>(found));
}

// ---- calls ------------------------------------------------------------------

void Actor::call(Dice& dice) {
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 4);
  const int64_t expected = expected_travel(way, workers_);
  if (dice.happens(50))
    expect("travel", expected, worker_.rpc_sync(to, &travel, way));
  else
    expect("travel_asynchronously", expected, worker_.rpc_sync(to, &travel_asynchronously, way));
}

void Actor::call_many(Dice& dice) {
  std::vector<Future<int64_t>> futures;
  std::vector<int64_t> expected;
  for (uint64_t left = 2 + dice.draw(4); left > 0; --left) {
    const WorkerId to = anybody(dice);
    const Journey way = journey(dice, 2);
    expected.push_back(expected_travel(way, workers_));
    futures.push_back(worker_.rpc_async(to, &travel, way));
  }
  const std::vector<int64_t> found = worker_.when_all(std::move(futures)).wait();
  for (size_t i = 0; i < found.size(); ++i) expect("travel in parallel", expected[i], found[i]);
}

void Actor::call_failing(Dice& dice) {
  const WorkerId to = anybody(dice);
  const std::string text = "storm " + std::to_string(dice.draw(1000));
  if (dice.happens(40)) return call_for_what_cannot_be_sent(to, dice);
  try {
    worker_.rpc_sync(to, &fail, text);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::remote_exception) throw;
    if (error.error().text.find(text) == std::string::npos)
      throw WrongResult("fail told '" + error.error().text + "', not '" + text + "'");
    if (error.error().worker != worker_.workers()[to.value].name)
      throw WrongResult("fail named worker '" + error.error().worker + "'");
    return expect("fail", 1, 1);
  }
  throw WrongResult("fail returned");
}

// The call fails, its value and the reference in it are gone, and the callee serves on.
void Actor::call_for_what_cannot_be_sent(WorkerId to, Dice& dice) {
  const Journey way = journey(dice, 2);
  const RRef<Counter> counter = worker_.remote<Counter>(anybody(dice), way.value);
  try {
    worker_.rpc_sync(to, &break_at_last, counter, way);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::bad_arguments) throw;
    if (error.error().function != "break_at_last")
      throw WrongResult("a value that cannot be sent named '" + error.error().function + "'");
    return expect("the counter in it", way.value, counter.rpc_sync(&Counter::total));
  }
  throw WrongResult("a value that cannot be sent was");
}

// The error reaches a caller that asks before the creation has failed, and one that asks after it.
void Actor::create_failing(Dice& dice) {
  const std::string text = "storm " + std::to_string(dice.draw(1000));
  const RRef<int64_t> number = worker_.remote(anybody(dice), &fail_at_last, text, journey(dice, 2));
  const Future<int64_t> seen = worker_.rpc_async(anybody(dice), &look, number);
  for (const Result<int64_t>& result : {number.to_here_async().result(), seen.result()}) {
    if (result.ok()) throw WrongResult("a reference whose creation failed gave a value");
    if (result.error().kind != ErrorKind::remote_exception) throw RpcError(result.error());
    if (result.error().text.find(text) == std::string::npos)
      throw WrongResult("a failed creation told '" + result.error().text + "', not '" + text + "'");
  }
}

void Actor::call_operator(Dice& dice) {
  const WorkerId to = anybody(dice);
  const auto size = static_cast<int64_t>(dice.draw(5));
  const auto number = static_cast<double>(dice.draw(100));
  const uint64_t place = places_.word();
  const auto sum = worker_.rpc_sync<at::Tensor>(to, "aten::add.Tensor",
                                                placed(worker_, place, at::full({size}, number)),
                                                placed(worker_, place, at::ones({size})));
  expect("aten::add", size * (static_cast<int64_t>(number) + 1), sum.sum().item<int64_t>());
}

void Actor::time_out(Dice& dice) {
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 2);
  const auto patience = std::chrono::microseconds(1 + dice.draw(20000));
  try {
    const int64_t found = worker_.with_timeout(patience).rpc_sync(to, &travel, way);
    if (found != expected_travel(way, workers_)) throw WrongResult("travel in time gave too much");
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout) throw;
  }
}

// ---- references -------------------------------------------------------------

void Actor::share(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const auto start = static_cast<int64_t>(dice.draw(1000));
  auto counter = worker_.remote<Counter>(owner, start);
  std::vector<Future<Unit>> bumps;
  int64_t expected = start;
  for (uint64_t left = 1 + dice.draw(3); left > 0; --left) {
    const WorkerId to = anybody(dice);
    const auto amount = static_cast<int64_t>(dice.draw(100));
    const Journey way = journey(dice, 2);
    expected += amount * (way.hops + 1);
    bumps.push_back(worker_.rpc_async(to, &bump, counter, amount, way));
  }
  for (const Future<Unit>& done : bumps) done.wait();
  expect("a shared counter", expected, counter.rpc_sync(&Counter::total));
}

void Actor::share_and_forget(Dice& dice) {
  const WorkerId owner = anybody(dice);
  auto counter = worker_.remote<Counter>(owner, int64_t{0});
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 2);
  const auto bumped = worker_.rpc_async(to, &bump, counter, int64_t{1}, way);
  counter = {};
  // Given up at once, now and then: its forks must be released all the same.
  if (dice.happens(50)) bumped.wait();
  const Journey brief{dice.word(), 1, 0};
  try {
    worker_.with_timeout(std::chrono::microseconds(1 + dice.draw(5000)))
        .rpc_sync(anybody(dice), &carry, worker_.remote<Counter>(owner, int64_t{3}), brief);
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout) throw;
  }
}

// Behind other calls, with little time: a creation that is given up must leave nothing either.
void Actor::create_in_haste(Dice& dice) {
  const WorkerId owner = anybody(dice);
  std::vector<Future<int64_t>> before;
  for (uint64_t left = 2 + dice.draw(5); left > 0; --left)
    before.push_back(worker_.rpc_async(owner, &travel, Journey{dice.word(), 0, 0}));
  const auto patience = std::chrono::microseconds(1 + dice.draw(uint64_t{1} << dice.draw(14)));
  const auto counter = worker_.with_timeout(patience).remote<Counter>(owner, int64_t{5});
  try {
    if (counter.rpc_sync(&Counter::total) != 5) throw WrongResult("a hasty counter is not 5");
  } catch (const RpcError& error) {
    if (error.kind() != ErrorKind::timeout) throw;
  }
  for (const Future<int64_t>& travelled : before) travelled.wait();
}

void Actor::carry_around(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const WorkerId to = anybody(dice);
  const auto start = static_cast<int64_t>(dice.draw(1000));
  const Journey way = journey(dice, 3);
  RRef<Counter> carried = worker_.rpc_sync(to, &carry, worker_.remote<Counter>(owner, start), way);
  expect("a carried counter", start + 1, carried.rpc_sync(&Counter::add, int64_t{1}));
}

void Actor::let_wander(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 12);
  const auto counter = worker_.remote<Counter>(owner, int64_t{0});
  static_cast<void>(worker_.rpc_async(to, &wander, counter, way));
}

void Actor::shelve(Dice& dice) {
  const WorkerId keeper = anybody(dice);
  const WorkerId owner = anybody(dice);
  auto shelf = worker_.remote<Shelf>(keeper);
  {
    auto counter = worker_.remote<Counter>(owner, int64_t{7});
    shelf.rpc_sync(&Shelf::put, std::string("first"), counter);
    shelf.rpc_async(&Shelf::put, std::string("second"), worker_.rref(Counter(9))).wait();
  }
  const RRef<Counter> first = shelf.rpc_sync(&Shelf::get, std::string("first"));
  if (dice.happens(50)) shelf.rpc_sync(&Shelf::drop, std::string("first"));
  expect("a shelved counter", 7, first.rpc_sync(&Counter::total));
  const RRef<Counter> second = shelf.rpc_sync(&Shelf::get, std::string("second"));
  expect("one's own shelved counter", 9, second.rpc_sync(&Counter::total));
}

void Actor::tie_shelves(Dice& dice) {
  const auto one = worker_.remote<Shelf>(anybody(dice));
  const auto other = worker_.remote<Shelf>(anybody(dice));
  const auto tied = one.rpc_async(&Shelf::keep, other);
  other.rpc_sync(&Shelf::keep, one);
  tied.wait();
}

void Actor::update_slowly(Dice& dice) {
  const WorkerId owner = anybody(dice);
  auto counter = worker_.remote<Counter>(owner, int64_t{0});
  std::vector<Future<int64_t>> updates;
  int64_t expected = 0;
  for (uint64_t left = 2 + dice.draw(3); left > 0; --left) {
    const Journey meanwhile = journey(dice, 1);
    expected += meanwhile.value;
    updates.push_back(counter.rpc_async(&Counter::add_slowly, meanwhile));
  }
  for (const Future<int64_t>& update : updates) update.wait();
  expect("a slowly updated counter", expected, counter.rpc_sync(&Counter::total));
}

void Actor::update_from_elsewhere(Dice& dice) {
  const auto start = static_cast<int64_t>(dice.draw(1000));
  auto counter = worker_.remote<Counter>(anybody(dice), start);
  const Journey by = journey(dice, 1);
  expect("a counter that let somebody add", start + by.value,
         counter.rpc_sync(&Counter::let_add, counter, by));
}

void Actor::move_blob(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const int64_t size = blob_size(dice);
  auto blob = worker_.remote<Blob>(owner, somewhere(at::ones({size})));
  if (dice.happens(40)) return;  // Deleted while its creation is on the other lane.
  if (dice.happens(50)) {
    expect("a blob's content", size, blob.rpc_sync(&Blob::content).sum().item<int64_t>());
  } else {
    expect("a blob's sum", size, static_cast<int64_t>(blob.rpc_sync(&Blob::sum)));
  }
}

// The reference is on the small lane, and may arrive before the value on the large one.
void Actor::share_blob(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const WorkerId to = anybody(dice);
  const int64_t size = blob_size(dice);
  auto blob = worker_.remote<Blob>(owner, somewhere(at::ones({size})));
  const Future<double> weight = worker_.rpc_async(to, &weigh, blob);
  blob = {};
  expect("a shared blob's sum", size, static_cast<int64_t>(weight.wait()));
}

// The call is on the large lane; what is let go of is told on the small one.
void Actor::let_go_of_blob(Dice& dice) {
  const int64_t size = blob_size(dice);
  auto blob = worker_.remote<Blob>(anybody(dice), somewhere(at::ones({1})));
  expect("a small blob's sum", 1, static_cast<int64_t>(blob.rpc_sync(&Blob::sum)));
  const Future<double> sum = blob.rpc_async(&Blob::sum_with, somewhere(at::ones({size})));
  blob = {};
  expect("a blob's last sum", size + 1, static_cast<int64_t>(sum.wait()));
}

// Large and small calls by turns: none overtakes another, though nobody waits for any.
void Actor::write_in_order(Dice& dice) {
  const auto diary = worker_.remote<Diary>(anybody(dice));
  const InOrder<Diary> in_order = diary.in_order();
  std::vector<Future<Unit>> written;
  const auto count = static_cast<int64_t>(2 + dice.draw(5));
  for (int64_t number = 0; number < count; ++number) {
    const int64_t size = dice.happens(50) ? blob_size(dice) : 1;
    written.push_back(in_order.rpc_async(&Diary::write, number, somewhere(at::ones({size}))));
  }
  for (const Future<Unit>& done : written) done.wait();
  const std::vector<int64_t> numbers = diary.rpc_sync(&Diary::numbers);
  expect("a diary's numbers", count, static_cast<int64_t>(numbers.size()));
  for (int64_t number = 0; number < count; ++number)
    expect("a number in its place", number, numbers[static_cast<size_t>(number)]);
}

}  // namespace rehearsal::storm
