#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "core/base/ids.h"
#include "sim/cluster_options.h"
#include "sim/hunt/hunt.h"

// Searching in the body of a user's own test. Link rehearsal::gtest.
namespace rehearsal::sim {

// A scenario: makes a cluster with this seed and these options, runs it, and expects things of it.
// It fails by throwing, as Cluster::run does, or by a failed expectation. One that makes no cluster
// with these options fails the test: nothing of what the hunt draws would reach it.
using Scene = std::function<void(Seed, const ClusterOptions&)>;

// Runs a scenario with many seeds, each with its own order of events and its own faults.
//
//   TEST(Training, HoldsWhateverTheNetworkDoes) {
//     EXPECT_TRUE(sim::hunt({.time = 30s, .cluster = {.faults = sim::FaultLevel::hostile}},
//                           [&](Seed seed, const sim::ClusterOptions& options) {
//                             sim::Cluster cluster(seed, program, options);
//                             cluster.run();
//                           }));
//   }
//
// A run that fails is made small: the mildest faults, and of all its choices, also of the order of
// events, only those that it needs to fail alike. The message ends with the one line that repeats
// it, alone on its line, which sets REHEARSAL_RUN and GoogleTest's filter: then this run is the
// only one, in this process, and what fails is reported where it fails, for a debugger. Every hunt
// of a test that is repeated repeats that run. A report folder gets a folder for each test that
// fails: `failure.run`, for REHEARSAL_RUN=@FILE, `failure.html`, a page to click through,
// `failure.trace.json` and `failure.spans.json`, for ui.perfetto.dev, `failure.txt`, the message
// and a diagram, and `events.txt`, a line for each event.
//
// sim/hunt/environment.h lists what a CI job may set. A variable that cannot be understood fails
// the test with one line.
[[nodiscard]] ::testing::AssertionResult hunt(const HuntOptions& options, const Scene& scene);

// The same for what is not a cluster, or makes its own: seeds 1 … `seeds`, nothing to shrink.
[[nodiscard]] ::testing::AssertionResult holds_for_seeds(uint64_t seeds,
                                                         const std::function<void(Seed)>& scenario);

}  // namespace rehearsal::sim
