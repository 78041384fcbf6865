#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "core/api/worker.h"
#include "scenarios/storm/actor.h"

// An actor's operations with references that have names, and with the workers' states.
namespace rehearsal::storm {
namespace {

// Longer than any worker that is not lost takes to publish.
constexpr auto kPatience = std::chrono::seconds(100);
constexpr const char* kRank = "rank";
// For a worker that is not there: it may be gone for good, and who waits takes up a place to
// execute.
constexpr auto kPatienceForAbsent = std::chrono::seconds(1);

// A worker that does not come back publishes nothing.
[[noreturn]] void throw_as_loss(const RpcError& error) {
  if (error.kind() != ErrorKind::timeout) throw error;
  Error loss = error.error();
  loss.kind = ErrorKind::peer_lost;
  throw RpcError(std::move(loss));
}

}  // namespace

int64_t total_by_name(CallContext& context, int64_t at, const std::string& name,
                      const Journey& journey) {
  if (journey.hops > 0) {
    const Leg leg = next_leg(journey, context.workers().size());
    return context.with_timeout(Timeout::never())
        .rpc_sync(leg.to, &total_by_name, at, name, leg.journey);
  }
  const std::vector<WorkerInfo> members = context.members();
  const bool is_there = std::ranges::any_of(members, [at](const WorkerInfo& member) {
    return static_cast<int64_t>(member.id.value) == at;
  });
  const Timeout patience = is_there ? kPatience : kPatienceForAbsent;
  return context.rpc_sync(context.lookup<Counter>(at, name, patience), &Counter::total);
}

// No two lives have the same numbers.
Accounts::Accounts(Worker& worker, Seed seed)
    : owner_(worker.name()), opened_(CausalIdHash{}(*worker.rref(int64_t{0}).name())) {
  Dice dice(seed, mix(hash_text(owner_), hash_text("accounts")));
  if (dice.happens(30)) worker.sleep(std::chrono::milliseconds(dice.draw(200)));
}

void Accounts::check_owner(const std::string& worker) const {
  if (owner_ != worker)
    throw std::logic_error("'" + worker + "' has the state of '" + owner_ + "'");
}

uint64_t open_account(CallContext& context) {
  return context.with_state<Accounts>([&](Accounts& accounts) {
    accounts.check_owner(context.name());
    return accounts.open();
  });
}

std::optional<int64_t> pay_in(CallContext& context, uint64_t account, int64_t amount) {
  return context.with_state<Accounts>([&](Accounts& accounts) -> std::optional<int64_t> {
    const auto found = accounts.totals().find(account);
    if (found == accounts.totals().end()) return std::nullopt;
    return found->second += amount;
  });
}

std::optional<int64_t> close_account(CallContext& context, uint64_t account) {
  return context.with_state<Accounts>([&](Accounts& accounts) -> std::optional<int64_t> {
    const auto found = accounts.totals().find(account);
    if (found == accounts.totals().end()) return std::nullopt;
    const int64_t total = found->second;
    accounts.totals().erase(found);
    return total;
  });
}

void register_names(FunctionRegistry& registry) {
  registry.function("total_by_name", &total_by_name)
      .function("open_account", &open_account)
      .function("pay_in", &pay_in)
      .function("close_account", &close_account);
}

void Actor::publish_rank() {
  worker_.publish(kRank, worker_.rref(Counter(static_cast<int64_t>(worker_.id().value))));
}

// From here or from elsewhere; a worker that was lost may come back.
void Actor::look_up_rank(Dice& dice) {
  const WorkerId of = anybody(dice);
  const WorkerId from = anybody(dice);
  const Journey way = journey(dice, 2);
  const auto rank = static_cast<int64_t>(of.value);
  try {
    if (dice.happens(50)) {
      const auto counter = worker_.lookup<Counter>(of, kRank, kPatience);
      expect("a rank by name", rank, counter.rpc_sync(&Counter::total));
    } else {
      const auto found = worker_.with_timeout(Timeout::never())
                             .rpc_sync(from, &total_by_name, rank, std::string(kRank), way);
      expect("a rank by name from elsewhere", rank, found);
    }
  } catch (const RpcError& error) {
    throw_as_loss(error);
  }
}

// The name alone holds the counter then, wherever that is.
void Actor::publish_while_awaited(Dice& dice) {
  const auto value = static_cast<int64_t>(dice.draw(1000));
  const std::string name = "counter " + std::to_string(dice.word());
  const WorkerId owner = anybody(dice);
  const WorkerId from = anybody(dice);
  const auto found = worker_.with_timeout(Timeout::never())
                         .rpc_async(from, &total_by_name, static_cast<int64_t>(worker_.id().value),
                                    name, Journey{dice.word(), 0, 0});
  if (dice.happens(50)) worker_.sleep(std::chrono::milliseconds(dice.draw(20)));
  worker_.publish(name, worker_.remote<Counter>(owner, value));
  try {
    expect("a counter by name", value, found.wait());
  } catch (const RpcError& error) {
    throw_as_loss(error);
  }
  if (dice.happens(50)) worker_.unpublish(name);
}

// In the state of another worker, which has it for one life.
void Actor::keep_account(Dice& dice) {
  const WorkerId at = anybody(dice);
  const uint64_t account = worker_.rpc_sync(at, &open_account);
  std::vector<Future<std::optional<int64_t>>> paid;
  int64_t expected = 0;
  for (uint64_t left = 2 + dice.draw(3); left > 0; --left) {
    const auto amount = static_cast<int64_t>(dice.draw(100));
    expected += amount;
    paid.push_back(worker_.rpc_async(at, &pay_in, account, amount));
  }
  (void)worker_.when_all(IfOneFails::cancel_rest, paid).wait();
  const std::optional<int64_t> total = worker_.rpc_sync(at, &close_account, account);
  if (!total)
    throw RpcError({.kind = ErrorKind::peer_lost, .text = "the account is of a former life"});
  expect("an account", expected, *total);
}

// Of futures of several types: the one that fails gives up those that would go on for ever, which
// may keep others from their turn to execute.
void Actor::give_up_rest(Dice& dice) {
  const auto latch = worker_.remote<Latch>(anybody(dice));
  const Journey way = journey(dice, 2);
  const Future<int64_t> held =
      worker_.with_timeout(Timeout::never()).rpc_async(anybody(dice), &hold, latch, way);
  const Future<double> sum = worker_.rpc_async(anybody(dice), &sum_of, somewhere(at::ones({2})));
  const Future<int64_t> failing =
      worker_.after(std::chrono::milliseconds(dice.draw(20))).then([]() -> int64_t {
        return fail("among others");
      });
  if (dice.happens(50)) {
    const auto all = worker_.when_all(IfOneFails::cancel_rest, held, sum, failing).result();
    if (all.ok()) throw WrongResult("what is held and what fails are complete");
  } else {
    const auto [never, two, failed] =
        worker_.collect_all(IfOneFails::cancel_rest, held, sum, failing).wait();
    if (never.ok() || failed.ok()) throw WrongResult("what is held or what fails gave a value");
    if (two.ok()) expect("a sum beside what fails", 2, static_cast<int64_t>(two.value()));
  }
  const Result<int64_t> left = held.result();
  if (left.ok()) throw WrongResult("what is held gave a value");
}

}  // namespace rehearsal::storm
