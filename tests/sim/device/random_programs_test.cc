#include <array>
#include <random>
#include <vector>

#include "tests/sim/device/devices.h"

// Goal: over programs drawn at random, a missing wait is told exactly where there is one, and a
// program without one has the same result in every order. The model knows no clocks: it follows,
// for each two operations, the arrows from one to the other.
namespace rehearsal::sim {
namespace {

using torch::Tensor;

constexpr size_t kStreams = 3, kTensors = 3, kSteps = 10;

struct Step {
  enum Kind { add, record, wait, synchronize } kind;
  size_t stream;
  size_t target, source;  // of add: target += source * 2
  size_t event;
};

std::vector<Step> drawn_program(std::mt19937& random) {
  std::vector<Step> program;
  for (size_t i = 0; i < kSteps; ++i) {
    const auto drawn = random() % 10;
    program.push_back({.kind = drawn < 4   ? Step::add
                               : drawn < 6 ? Step::record
                               : drawn < 8 ? Step::wait
                                           : Step::synchronize,
                       .stream = random() % kStreams,
                       .target = random() % kTensors,
                       .source = random() % kTensors,
                       .event = random() % 2});
  }
  return program;
}

// Which steps are surely over when a step begins.
class Model {
 public:
  // Whether some two steps of the program need an order and have none.
  static bool has_race(const std::vector<Step>& program) {
    Model model;
    for (size_t i = 0; i < program.size(); ++i) model.take(program, i);
    for (size_t later = 0; later < program.size(); ++later)
      for (size_t earlier = 0; earlier < later; ++earlier)
        if (conflict(program[earlier], program[later]) && !model.arrow_[earlier][later])
          return true;
    return false;
  }

 private:
  static bool conflict(const Step& a, const Step& b) {
    if (a.kind != Step::add || b.kind != Step::add) return false;
    return a.target == b.target || a.target == b.source || a.source == b.target;
  }

  void take(const std::vector<Step>& program, size_t now) {
    const Step& step = program[now];
    if (step.kind == Step::record) recorded_[step.event] = static_cast<int>(now);
    for (size_t before = 0; before < now; ++before) {
      const bool same_stream =
          program[before].stream == step.stream && program[before].kind != Step::synchronize;
      const bool waited_for =
          step.kind == Step::wait && recorded_[step.event] == static_cast<int>(before);
      if (same_stream || waited_for || program[before].kind == Step::synchronize)
        add_arrow(before, now);
    }
  }

  void add_arrow(size_t from, size_t to) {
    arrow_[from][to] = true;
    for (size_t before = 0; before < from; ++before)
      if (arrow_[before][from]) arrow_[before][to] = true;
  }

  std::array<std::array<bool, kSteps>, kSteps> arrow_{};
  std::array<int, 2> recorded_{-1, -1};
};

struct Result {
  std::vector<float> values;
  bool told = false;
};

Result run(const std::vector<Step>& program, uint64_t seed) {
  SimulatedDevices devices({.seed = seed});
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < kTensors; ++i)
    tensors.push_back(torch::full({2}, static_cast<float>(i + 1), sim_device()));
  devices.synchronize();
  std::vector<c10::Stream> streams;
  for (size_t i = 0; i < kStreams; ++i) streams.push_back(SimulatedDevices::new_stream(0));
  std::array<std::optional<c10::Event>, 2> events;
  for (const Step& step : program) {
    const c10::StreamGuard on(streams[step.stream]);
    if (step.kind == Step::add) {
      tensors[step.target].add_(tensors[step.source], 2);
    } else if (step.kind == Step::synchronize) {
      streams[step.stream].synchronize();
    } else if (step.kind == Step::record) {
      if (!events[step.event]) events[step.event].emplace(SimulatedDevices::kType);
      events[step.event]->record(streams[step.stream]);
    } else if (events[step.event]) {
      events[step.event]->block(streams[step.stream]);
    }
  }
  devices.synchronize();
  Result result;
  for (const Tensor& tensor : tensors) result.values.push_back(tensor.cpu()[0].item<float>());
  result.told = !devices.problems().empty();
  return result;
}

TEST(RandomPrograms, AreToldExactlyWhereAnOrderIsMissing) {
  std::mt19937 random(1);
  int races = 0, without = 0;
  for (int i = 0; i < 600; ++i) {
    const std::vector<Step> program = drawn_program(random);
    const bool race = Model::has_race(program);
    (race ? races : without) += 1;
    const Result first = run(program, 0);
    EXPECT_EQ(first.told, race) << "program " << i;
    for (uint64_t seed = 1; seed < 4 && !race; ++seed)
      EXPECT_EQ(run(program, seed).values, first.values) << "program " << i;
  }
  EXPECT_GT(races, 100);
  EXPECT_GT(without, 100);
}

}  // namespace
}  // namespace rehearsal::sim
