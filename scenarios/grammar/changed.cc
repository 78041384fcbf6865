#include "scenarios/grammar/changed.h"

#include <ATen/Functions.h>

#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/grammar/functions.h"

namespace rehearsal::grammar {
namespace {

using std::chrono::microseconds;
using storm::Dice;

void expect_all(const std::string& what, double expected, const at::Tensor& found) {
  if (!found.eq(expected).all().item<bool>())
    throw WrongResult(what + " has other elements than when it was sent");
}

bool was_changed(const Error& error) {
  return error.kind == ErrorKind::bad_arguments &&
         error.text.find("was changed in place when") != std::string::npos;
}

// Of small messages and of those that take the other lane.
int64_t size_of(Dice& dice) {
  return static_cast<int64_t>(dice.happens(50) ? 1 + dice.draw(8) : 16'384 + dice.draw(16'384));
}

void pause(const WorkerAccess& here, Dice& dice) { here.sleep(microseconds(dice.draw(1'000))); }

void change_arguments(const WorkerAccess& here, WorkerId to, Dice& dice) {
  const Calls calls = here.with_timeout(Timeout::never());
  const int64_t size = size_of(dice);
  const at::Tensor sent = at::ones({size});
  std::vector<Future<int64_t>> counts;
  for (uint64_t left = 1 + dice.draw(3); left > 0; --left)
    counts.push_back(dice.happens(50)
                         ? calls.rpc_async(to, &count_ones, sent)
                         : calls.remote(to, &count_ones, sent).to_here_async(Timeout::never()));
  pause(here, dice);
  sent.fill_(2);
  for (const Future<int64_t>& count : counts) {
    const Result<int64_t> result = count.result();
    if (result.ok()) expect("the number of ones", size, result.value());
    if (!result.ok() && !was_changed(result.error())) throw RpcError(result.error());
  }
}

void change_result(const WorkerAccess& here, WorkerId to, Dice& dice) {
  const auto keeper = here.with_timeout(Timeout::never()).remote<Keeper>(to, size_of(dice));
  const InOrder<Keeper> in_order = keeper.in_order().with_timeout(Timeout::never());
  const Future<at::Tensor> before = in_order.rpc_async(&Keeper::ones);
  const Future<Unit> overwritten = in_order.rpc_async(&Keeper::overwrite);
  const Result<at::Tensor> result = before.result();
  if (result.ok()) expect_all("a result", 1, result.value());
  if (!result.ok() && !was_changed(result.error())) throw RpcError(result.error());
  static_cast<void>(overwritten.wait());
}

void change_stream(const WorkerAccess& here, WorkerId to, Dice& dice) {
  Stream<at::Tensor> stream =
      here.with_timeout(Timeout::never()).rpc_stream(to, &write_and_change, size_of(dice));
  try {
    for (int value = 1; value <= 2; ++value) {
      const std::optional<at::Tensor> read = stream.next();
      if (!read) throw WrongResult("a stream ended without its values");
      expect_all("a value of a stream", value, *read);
    }
  } catch (const RpcError& error) {
    if (!was_changed(error.error())) throw;
  }
}

}  // namespace

int64_t count_ones(const at::Tensor& ones) {
  expect_all("an argument", 1, ones);
  return ones.numel();
}

Keeper::Keeper(int64_t size) : ones_(at::ones({size})) {}

void Keeper::overwrite() { ones_.fill_(2); }

void write_and_change(CallContext& context, StreamWriter<at::Tensor>& out, int64_t size) {
  const at::Tensor written = at::ones({size});
  out.write(written);
  context.sleep(microseconds(size % 700));
  written.fill_(2);
  out.write(written);
}

void send_and_change(const WorkerAccess& here, WorkerId to, Dice& dice) {
  if (to == here.id()) return;
  constexpr decltype(&change_result) kWays[] = {change_arguments, change_result, change_stream};
  kWays[dice.draw(std::size(kWays))](here, to, dice);
}

void register_changed(FunctionRegistry& registry) {
  registry.function("count_ones", &count_ones).function("write_and_change", &write_and_change);
  registry.type<Keeper>("Keeper")
      .constructor<int64_t>()
      .method("ones", &Keeper::ones)
      .method("overwrite", &Keeper::overwrite);
}

}  // namespace rehearsal::grammar
