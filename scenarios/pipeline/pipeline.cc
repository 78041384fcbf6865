#include "scenarios/pipeline/pipeline.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "scenarios/devices.h"
#include "scenarios/pipeline/training.h"
#include "scenarios/storm/drawn_faults.h"

namespace rehearsal::pipeline {

Settings settings_of(const Options& options, Seed seed) {
  Settings settings{.stages = options.integer("stages"),
                    .workers = options.integer("workers"),
                    .blocks = options.integer("blocks"),
                    .channels = options.integer("channels"),
                    .classes = options.integer("classes"),
                    .side = options.integer("side"),
                    .steps = options.integer("steps"),
                    .micro_batches = options.integer("micro_batches"),
                    .rows = options.integer("rows"),
                    .pass_ms = options.integer("pass_ms"),
                    .learning_rate = options.real("learning_rate"),
                    .momentum = options.real("momentum"),
                    .seed = seed.value};
  settings.workers = std::min(settings.workers, settings.stages);
  const std::string& schedule = options.text("schedule");
  if (schedule == "fill_drain") settings.schedule = PipelineSchedule::fill_drain;
  if (schedule == "zero_bubble") settings.schedule = PipelineSchedule::zero_bubble;
  return settings;
}

namespace {

std::string step_line(int64_t step, const Settings& settings, double loss,
                      const std::vector<PipelineReport>& reports) {
  char text[96];
  std::snprintf(text, sizeof text, "step %3lld/%lld  loss %8.6f  idle",
                static_cast<long long>(step), static_cast<long long>(settings.steps), loss);
  std::string line = text;
  for (const PipelineReport& report : reports) {
    std::snprintf(text, sizeof text, "  %s %2.0f %%", report.owner.name.c_str(),
                  100 * report.bubble);
    line += text;
  }
  return line;
}

// Throws std::logic_error unless both have the same bits.
void compare(const Trained& found, const Trained& expected) {
  for (size_t stage = 0; stage < expected.parameters.size(); ++stage)
    for (size_t i = 0; i < expected.parameters[stage].size(); ++i)
      if (!at::equal(found.parameters.at(stage).at(i), expected.parameters[stage][i]))
        throw std::logic_error("parameter " + std::to_string(i) + " of stage " +
                               std::to_string(stage) +
                               " is not what one process trains with the same pictures");
  if (found.losses != expected.losses)
    throw std::logic_error("a loss is not that of one process with the same pictures");
}

// How wide the pictures of a step are: in letters, and as SVG in pixels; zero: none.
struct Pictures {
  size_t columns = 0;
  size_t pixels = 0;
};

Pictures pictures_of(const Options& options) {
  return {static_cast<size_t>(options.integer("picture")),
          static_cast<size_t>(options.integer("svg"))};
}

void master(Worker& worker, const Settings& settings, const Pictures& pictures,
            Reporter& reporter) {
  const Trained trained =
      train_in_stages(worker, settings, [&](int64_t number, double loss, const PipelineStep& step) {
        worker.note("loss", loss);
        reporter.line(step_line(number + 1, settings, loss, step.reports));
        if (pictures.columns > 0) reporter.line(picture_of(step, pictures.columns));
        if (pictures.pixels > 0) reporter.line(svg_picture_of(step, pictures.pixels));
      });
  if (rounds_as_cpu(worker)) compare(trained, train_alone(settings));
  for (size_t i = 0; i < trained.losses.size(); ++i)
    reporter.results.number("loss " + std::to_string(i), trained.losses[i]);
  for (size_t stage = 0; stage < trained.parameters.size(); ++stage)
    for (size_t i = 0; i < trained.parameters[stage].size(); ++i)
      reporter.results.tensor("stage " + std::to_string(stage) + ", parameter " + std::to_string(i),
                              trained.parameters[stage][i]);
}

Program program(const ScenarioRun& run) {
  Settings settings = settings_of(run.options, run.seed);
  settings.devices = run.devices;
  FunctionRegistry registry;
  register_shard(registry);
  Program program(std::move(registry));
  program.worker("master",
                 [settings, pictures = pictures_of(run.options), &reporter = run.reporter](
                     Worker& worker) { master(worker, settings, pictures, reporter); });
  std::vector<std::string> workers;
  for (int64_t i = 0; i < settings.workers; ++i) workers.push_back("worker" + std::to_string(i));
  map_devices(program, run.devices, workers);
  program.worker(
      "worker", [](Worker&) {}, Count{static_cast<uint32_t>(settings.workers)});
  workers.emplace_back("master");
  map_devices(program, run.devices, workers);
  return program;
}

ScenarioFaults draw_faults(const Options&, Seed seed) { return storm::draw_faults(seed, 25, 60); }

void declare_options(OptionTable& options) {
  options
      .integer("stages", {.full = 2,
                          .tiny = 2,
                          .min = 1,
                          .max = 100,
                          .meaning = "parts of the net",
                          .drawn_min = 1,
                          .drawn_max = 4})
      .integer("workers", {.full = 2,
                           .tiny = 2,
                           .min = 1,
                           .max = 100,
                           .meaning = "that the stages are dealt to in turn; at most one a stage",
                           .drawn_min = 1,
                           .drawn_max = 3})
      .integer("micro_batches", {.full = 8,
                                 .tiny = 3,
                                 .min = 1,
                                 .max = 1000,
                                 .meaning = "of a step",
                                 .drawn_min = 1,
                                 .drawn_max = 4})
      .integer("steps", {5, 1, 1, 1'000'000, "of the optimizer"})
      .integer("rows", {15, 1, 1, 4096, "pictures in a micro-batch"})
      .integer("side", {32, 3, 1, 1024, "pixels of a picture"})
      .integer("channels", {16, 2, 1, 1024, "of each convolution"})
      .integer("blocks", {2, 1, 0, 100, "of each stage: two convolutions, with a way around them"})
      .integer("classes", {30, 3, 1, 1000, "of pictures"})
      .choice("schedule",
              {{"one_f_one_b", "fill_drain", "zero_bubble"}, "the order of a worker's passes"})
      .integer("pass_ms", {0, 0, 0, 1'000'000, "milliseconds that a stage rests in each pass"})
      .integer("picture", {0, 0, 0, 10'000, "columns of a picture of each step: who computed when"})
      .integer("svg", {0, 0, 0, 10'000, "pixels of the same as SVG"})
      .real("learning_rate", {0.05, 0.05, 0, 1e6, "of SGD"})
      .real("momentum", {0.9, 0.9, 0, 1, "of SGD"});
}

}  // namespace

Scenario scenario() {
  Scenario scenario;
  scenario.name = "pipeline";
  scenario.summary = "a residual net in stages at several workers, beside the same net in one";
  declare_options(scenario.options);
  scenario.schedule_independent = true;
  scenario.uses_devices = true;
  scenario.draw_faults = draw_faults;
  scenario.program = program;
  return scenario;
}

}  // namespace rehearsal::pipeline
