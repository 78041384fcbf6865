#include <ATen/TensorOperators.h>

#include <chrono>

#include "scenarios/storm/actor.h"

// An actor's operations with streams, and with calls that it gives up.
namespace rehearsal::storm {

void Actor::expect_reading(const Journey& way, int64_t position,
                           const std::optional<Reading>& reading) {
  if (!reading) throw WrongResult("a stream ended before value " + std::to_string(position));
  expect("a stream's value", expected_reading(way, position, workers_), reading->number);
  if (reading->padding.sum().item<int64_t>() != reading->padding.numel())
    throw WrongResult("a stream's value came with the tensor of another");
  if (!reading->counter) return;
  if (!reading->counter->confirmed_by_owner())
    throw WrongResult("a stream's reference was given before its owner had confirmed it");
  expect("a stream's counter", reading->number, reading->counter->rpc_sync(&Counter::total));
}

// To its end or to somewhere in the middle, where values and references are on their way.
void Actor::read_stream(Dice& dice) {
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 2);
  const auto count = static_cast<int64_t>(dice.draw(20));
  const uint64_t credit = 1 + dice.draw(6);
  const bool drops = dice.happens(50);
  const int64_t wanted =
      drops ? static_cast<int64_t>(dice.draw(static_cast<uint64_t>(count) + 1)) : count;
  Stream<Reading> stream = worker_.with_timeout(Timeout::never())
                               .with_credit(credit)
                               .rpc_stream(to, &read_out, way, count);
  for (int64_t position = 0; position < wanted; ++position)
    expect_reading(way, position, stream.next());
  if (!drops && stream.next()) throw WrongResult("a stream has more values than were asked for");
}

// All values are asked for at once, some twice as many as there are.
void Actor::read_stream_ahead(Dice& dice) {
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 1);
  const auto count = static_cast<int64_t>(dice.draw(8));
  Stream<Reading> stream =
      worker_.with_timeout(Timeout::never()).rpc_stream(to, &read_out, way, count);
  std::vector<Future<std::optional<Reading>>> values;
  for (int64_t left = 2 * count; left > 0; --left) values.push_back(stream.next_async());
  for (int64_t position = 0; position < count; ++position)
    expect_reading(way, position, values.at(position).wait());
  for (int64_t position = count; position < 2 * count; ++position)
    if (values.at(position).wait()) throw WrongResult("a stream went on behind its end");
}

// The awaited value never comes: only the end of the first call ends the others, and with them the
// latch.
void Actor::hold_for_a_while(Dice& dice) {
  const auto latch = worker_.remote<Latch>(anybody(dice));
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 2);
  const Future<int64_t> held =
      worker_.with_timeout(Timeout::never()).rpc_async(to, &hold, latch, way);
  // Not by a call: that may need the place among the executing functions which this one holds.
  if (dice.happens(70)) worker_.sleep(std::chrono::microseconds(dice.draw(5000)));
  held.cancel();
  const Result<int64_t> result = held.result();
  if (result.ok()) throw WrongResult("what never comes was waited for in vain, and came");
  if (result.error().kind != ErrorKind::cancelled) throw RpcError(result.error());
}

}  // namespace rehearsal::storm
