// Goal: gloo, where it is chosen, brings the large tensors of a process group together as the calls
// of the workers do. Method: a process for each worker, beside a serial computation.
#include <ATen/ATen.h>

#include "tests/real_net/gloo/gloo_program.h"

namespace rehearsal::real {
namespace {

constexpr uint32_t kCount = 3;
constexpr int64_t kLarge = 40'000;  // elements: more than 64 KiB but of the smallest types

at::Tensor input_of(uint32_t rank, int64_t size, c10::ScalarType type) {
  const at::Tensor numbers = at::arange(size, at::kLong).mul(rank * 7 + 3).remainder(5).sub(1);
  return c10::isFloatingType(type) ? numbers.to(type).div(3) : numbers.to(type);
}

at::Tensor reduced(const std::vector<at::Tensor>& all, ReduceOp op) {
  at::Tensor result = all.front().clone();
  for (size_t i = 1; i < all.size(); ++i)
    result = op == ReduceOp::product ? at::mul(result, all[i])
             : op == ReduceOp::min   ? at::minimum(result, all[i])
             : op == ReduceOp::max   ? at::maximum(result, all[i])
                                     : at::add(result, all[i]);
  return op == ReduceOp::average ? at::div(result, static_cast<int64_t>(all.size())) : result;
}

// Whole numbers have equal bits; of others the order of a sum may differ.
void require_same(const at::Tensor& given, const at::Tensor& expected, const std::string& what) {
  const bool is_fraction = c10::isFloatingType(expected.scalar_type());
  const double tolerance = expected.element_size() == 2 ? 3e-2 : 1e-5;
  require(is_fraction ? at::allclose(given, expected, tolerance, tolerance)
                      : at::equal(given, expected),
          what + " of " + c10::toString(expected.scalar_type()));
}

// The same bits at all members.
void require_agreed(const ProcessGroup& group, const at::Tensor& mine, const std::string& what) {
  const at::Tensor bytes =
      mine.clone(at::MemoryFormat::Contiguous).view(-1).view(at::kByte).to(at::kInt);
  const at::Tensor least = bytes.clone();
  const at::Tensor most = bytes.clone();
  group.all_reduce(least, ReduceOp::min);
  group.all_reduce(most, ReduceOp::max);
  require(at::equal(least, most), what + " has the same bits everywhere");
}

void operate(const ProcessGroup& group, int64_t size, c10::ScalarType type) {
  std::vector<at::Tensor> all;
  for (uint32_t rank = 0; rank < kCount; ++rank) all.push_back(input_of(rank, size, type));
  const at::Tensor& mine = all[group.rank()];
  std::vector<ReduceOp> ops = {ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};
  if (c10::isFloatingType(type)) ops.push_back(ReduceOp::average);
  for (const ReduceOp op : ops) {
    // Not contiguous, so that where it goes matters.
    const at::Tensor target = at::stack({mine, mine}, 1).select(1, 0);
    group.all_reduce(target, op);
    require_same(target, reduced(all, op), "all_reduce");
    require_agreed(group, target, "all_reduce");
    const at::Tensor own = at::empty_like(mine);
    std::vector<at::Tensor> given;
    for (uint32_t rank = 0; rank < kCount; ++rank) given.push_back(mine + rank);
    group.reduce_scatter(own, given, op);
    std::vector<at::Tensor> theirs;
    for (const at::Tensor& one : all) theirs.push_back(one + group.rank());
    require_same(own, reduced(theirs, op), "reduce_scatter");
  }
  const at::Tensor given = mine.clone();
  group.broadcast(given, 2);
  require(at::equal(given, all[2]), "broadcast");
  std::vector<at::Tensor> gathered(kCount);
  for (at::Tensor& one : gathered) one = at::empty_like(mine);
  group.all_gather(gathered, mine);
  for (uint32_t rank = 0; rank < kCount; ++rank)
    require(at::equal(gathered[rank], all[rank]), "all_gather");
}

using Gloo = GlooTest;

TEST_F(Gloo, GivesTheResultsOfTheCallsForEveryTypeAndSize) {
  const Program program = members(kCount, [](Worker& worker) {
    const ProcessGroup group(worker);
    for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kChar, at::kByte,
                            at::kShort, at::kInt, at::kLong})
      for (const int64_t size : {int64_t{1}, kLarge, 8 * kLarge}) operate(group, size, type);
  });
  Nursery children(
      [&](int rank) { return run(options(static_cast<uint32_t>(rank), "gloo"), program); });
  std::vector<pid_t> all;
  for (int rank = 0; rank < static_cast<int>(kCount); ++rank) all.push_back(children.start(rank));
  for (const pid_t child : all) EXPECT_EQ(children.wait(child), 0);
}

TEST_F(Gloo, CarriesOnlyLargeTensorsAndListensOnlyWhereTheWorkerDoes) {
  const Program program = members(kCount, [](Worker& worker) {
    const ProcessGroup group(worker);
    group.all_reduce(at::ones({100}));
    require(listens_at().size() == 1, "small tensors need nothing but the worker's own port");
    group.all_reduce(at::ones({100'000}));
    const std::vector<std::string> places = listens_at();
    require(places.size() == 2, "gloo listens at one more port");
    for (const std::string& place : places)
      require(place.starts_with("0100007F:"), place + " is on loopback");
    group.barrier();
  });
  Nursery children(
      [&](int rank) { return run(options(static_cast<uint32_t>(rank), "gloo"), program); });
  std::vector<pid_t> all;
  for (int rank = 0; rank < static_cast<int>(kCount); ++rank) all.push_back(children.start(rank));
  for (const pid_t child : all) EXPECT_EQ(children.wait(child), 0);
}

TEST_F(Gloo, ManyOperationsOfSeveralGroupsMayBeUnderWay) {
  const Program program = members(kCount, [](Worker& worker) {
    const ProcessGroup all(worker);
    const ProcessGroup others(worker, {"member2", "member0", "member1"});
    std::vector<at::Tensor> sums;
    std::vector<Future<Unit>> under_way;
    for (int64_t i = 0; i < 24; ++i) {
      // Small ones between large ones.
      sums.push_back(at::full({i % 3 == 0 ? 10 : 50'000}, i + worker.id().value));
      under_way.push_back((i % 2 == 0 ? all : others).all_reduce_async(sums.back()));
    }
    for (const auto& one : under_way) one.wait();
    for (int64_t i = 0; i < 24; ++i)
      require(at::equal(sums[i], at::full_like(sums[i], 3 * i + 3)), "sum " + std::to_string(i));
  });
  Nursery children(
      [&](int rank) { return run(options(static_cast<uint32_t>(rank), "gloo"), program); });
  std::vector<pid_t> started;
  for (int rank = 0; rank < static_cast<int>(kCount); ++rank)
    started.push_back(children.start(rank));
  for (const pid_t child : started) EXPECT_EQ(children.wait(child), 0);
}

TEST_F(Gloo, IsChosenByAllWorkersOrTheOneThatDiffersIsRefused) {
  const Program program = members(2, [](Worker& worker) { const ProcessGroup group(worker); });
  Nursery children([&](int rank) {
    const WorkerOptions chosen = options(static_cast<uint32_t>(rank), rank == 0 ? "gloo" : "own");
    const Status status = run_worker(chosen, program);
    const std::string text = status.ok() ? "" : status.error().text;
    return text.find("collectives is ") != std::string::npos ? 7 : 1;
  });
  const pid_t first = children.start(0);
  const pid_t second = children.start(1);
  EXPECT_EQ(children.wait(second), 7);
  EXPECT_EQ(children.wait(first), 7);  // It forms, and has nobody else for that place.
}

}  // namespace
}  // namespace rehearsal::real
