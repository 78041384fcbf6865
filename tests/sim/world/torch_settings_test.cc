// Goal: what a worker sets of LibTorch for its process no other worker sees, nor the test, nor the
// next run. Method: a table of settings, each changed by one worker, in runs that follow each
// other.
#include "sim/world/torch_settings.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <string>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/program.h"
#include "core/api/worker.h"
#include "sim/cluster.h"

namespace rehearsal::sim {
namespace {

using at::Context;
using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Change {
  const char* name;
  void (*make)();
  bool (*is_made)();
};

// Of a setting that is on or off: sets it to what it is not.
template <auto get, auto set, bool value>
Change switched(const char* name) {
  return {name, [] { (at::globalContext().*set)(value); },
          [] { return (at::globalContext().*get)() == value; }};
}

void set_default_dtype(c10::ScalarType type) {
  c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
}

bool counts(Float32Backend backend, Float32Op op, Float32Precision precision) {
  return at::globalContext().float32Precision(backend, op) == precision;
}

std::vector<Change> switches() {
  return {
      switched<&Context::deterministicFillUninitializedMemory,
               &Context::setDeterministicFillUninitializedMemory, false>("fill"),
      switched<&Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn, false>("mkldnn"),
      switched<&Context::deterministicMkldnn, &Context::setDeterministicMkldnn, true>(
          "deterministic mkldnn"),
      switched<&Context::userEnabledNNPACK, &Context::setUserEnabledNNPACK, false>("nnpack"),
      switched<&Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN, false>("cudnn"),
      switched<&Context::deterministicCuDNN, &Context::setDeterministicCuDNN, true>(
          "deterministic cudnn"),
      switched<&Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN, true>("benchmark"),
      switched<&Context::immediateMiopen, &Context::setImmediateMiopen, true>("miopen"),
      switched<&Context::userEnabledFlashSDP, &Context::setSDPUseFlash, false>("flash"),
      switched<&Context::userEnabledFA3SDP, &Context::setSDPUseFA3, true>("flash 3"),
      switched<&Context::userEnabledMemEfficientSDP, &Context::setSDPUseMemEfficient, false>(
          "efficient"),
      switched<&Context::userEnabledMathSDP, &Context::setSDPUseMath, false>("math"),
      switched<&Context::userEnabledCuDNNSDP, &Context::setSDPUseCuDNN, false>("cudnn attention"),
      switched<&Context::userEnabledOverrideableSDP, &Context::setSDPUseOverrideable, false>(
          "overrideable"),
      switched<&Context::allowFP16BF16ReductionMathSDP, &Context::setAllowFP16BF16ReductionMathSDP,
               true>("reduction of attention"),
      switched<&Context::allowFP16AccumulationCuBLAS, &Context::setAllowFP16AccumulationCuBLAS,
               true>("accumulation"),
      switched<&Context::releaseWeightsWhenPrepacking, &Context::setReleaseWeightsWhenPrepacking,
               true>("weights"),
      switched<&Context::areVmapFallbackWarningsEnabled, &Context::setDisplayVmapFallbackWarnings,
               true>("vmap warnings"),
      switched<&Context::warnOnAccumulateGradStreamMismatch,
               &Context::setWarnOnAccumulateGradStreamMismatch, false>("stream warnings")};
}

std::vector<Change> precision_changes() {
  return {
      {"precision of products", [] { at::globalContext().setFloat32MatmulPrecision("medium"); },
       [] {
         return at::globalContext().float32MatmulPrecision() ==
                    at::Float32MatmulPrecision::MEDIUM &&
                counts(Float32Backend::MKLDNN, Float32Op::MATMUL, Float32Precision::BF16);
       }},
      // The older way to ask for it contradicts that, and throws.
      {"precision of products of one backend",
       [] {
         at::globalContext().setFloat32Precision(Float32Backend::MKLDNN, Float32Op::MATMUL,
                                                 Float32Precision::BF16);
       },
       [] { return counts(Float32Backend::MKLDNN, Float32Op::MATMUL, Float32Precision::BF16); }},
      {"precision of all",
       [] {
         at::globalContext().setFloat32Precision(Float32Backend::GENERIC, Float32Op::ALL,
                                                 Float32Precision::TF32);
       },
       [] {
         return counts(Float32Backend::GENERIC, Float32Op::ALL, Float32Precision::TF32) &&
                counts(Float32Backend::MKLDNN, Float32Op::CONV, Float32Precision::TF32);
       }},
      {"precision of cudnn", [] { at::globalContext().setAllowTF32CuDNN(false); },
       [] { return !counts(Float32Backend::CUDA, Float32Op::CONV, Float32Precision::TF32); }},
      {"precision of cublas", [] { at::globalContext().setAllowTF32CuBLAS(true); },
       [] { return counts(Float32Backend::CUDA, Float32Op::MATMUL, Float32Precision::TF32); }}};
}

std::vector<Change> other_changes() {
  using torch::autograd::AnomalyMode;
  return {{"default dtype", [] { set_default_dtype(at::kDouble); },
           [] { return at::ones({1}).scalar_type() == at::kDouble; }},
          {"threads", [] { at::set_num_threads(3); }, [] { return at::get_num_threads() == 3; }},
          {"anomaly mode", [] { AnomalyMode::set_enabled(true, false); },
           [] { return AnomalyMode::is_enabled() && !AnomalyMode::should_check_nan(); }},
          {"deterministic algorithms",
           [] { at::globalContext().setDeterministicAlgorithms(true, true); },
           [] {
             return at::globalContext().deterministicAlgorithms() &&
                    at::globalContext().deterministicAlgorithmsWarnOnly();
           }},
          {"limit", [] { at::globalContext().setBenchmarkLimitCuDNN(3); },
           [] { return at::globalContext().benchmarkLimitCuDNN() == 3; }},
          {"order of attention",
           [] {
             at::globalContext().setSDPPriorityOrder({0, 2, 1, 4, 3});
           },
           [] {
             const auto order = at::globalContext().sDPPriorityOrder();
             return order.front() == at::SDPBackend::math &&
                    order.back() == at::SDPBackend::cudnn_attention;
           }},
          {"carveout", [] { at::globalContext()._setSMCarveout_EXPERIMENTAL(7); },
           [] { return at::globalContext()._SMCarveout_EXPERIMENTAL() == 7; }},
          {"sparse invariants", [] { at::globalContext().setCheckSparseTensorInvariants(true); },
           [] { return at::globalContext().checkSparseTensorInvariants() == true; }},
          {"half reduction", [] { at::globalContext().setAllowFP16ReductionCuBLAS(false, false); },
           [] {
             return at::globalContext().allowFP16ReductionCuBLAS() ==
                    at::CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK;
           }},
          {"bfloat reduction", [] { at::globalContext().setAllowBF16ReductionCuBLAS(false, true); },
           [] {
             return at::globalContext().allowBF16ReductionCuBLAS() ==
                    at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK;
           }}};
}

const std::vector<Change>& changes() {
  static const std::vector<Change> all = [] {
    std::vector<Change> rows = other_changes();
    for (const auto& more : {switches(), precision_changes()})
      rows.insert(rows.end(), more.begin(), more.end());
    return rows;
  }();
  return all;
}

bool sees_change(int64_t number) { return changes().at(number).is_made(); }
bool sees_after_a_pause(CallContext& context, int64_t number) {
  context.sleep(milliseconds(5));
  return sees_change(number);
}

FunctionRegistry seeing_functions() {
  FunctionRegistry registry;
  registry.function("sees_change", &sees_change)
      .function("sees_after_a_pause", &sees_after_a_pause);
  return registry;
}

// 'changer' makes the change; both look wherever their code runs.
void change_and_look(Worker& worker, int64_t number) {
  const Change& change = changes().at(number);
  EXPECT_FALSE(change.is_made());
  change.make();
  EXPECT_TRUE(change.is_made());
  worker.barrier();
  EXPECT_FALSE(worker.rpc_sync("other", &sees_change, number));
  EXPECT_TRUE(change.is_made());
  EXPECT_FALSE(worker.rpc_sync("other", &sees_after_a_pause, number));
  const Future<bool> seen = worker.rpc_async("other", &sees_change, number).then([number](bool) {
    return sees_change(number);
  });
  EXPECT_TRUE(seen.wait());
  EXPECT_TRUE(worker.rpc_sync("changer", &sees_after_a_pause, number));
  worker.barrier();
}

void only_look(Worker& worker, int64_t number) {
  EXPECT_FALSE(sees_change(number));
  worker.barrier();
  EXPECT_TRUE(worker.rpc_sync("changer", &sees_change, number));
  EXPECT_FALSE(sees_change(number));
  EXPECT_TRUE(worker.rpc_sync("changer", &sees_after_a_pause, number));
  EXPECT_FALSE(sees_change(number));
  worker.barrier();
}

Program changing_program(int64_t number) {
  Program program(seeing_functions());
  program.worker("changer", [number](Worker& worker) { change_and_look(worker, number); });
  program.worker("other", [number](Worker& worker) { only_look(worker, number); });
  return program;
}

TEST(TorchSettings, AreEachWorkersOwnAndAreResetBetweenRuns) {
  for (size_t number = 0; number < changes().size(); ++number) {
    SCOPED_TRACE(changes()[number].name);
    const TorchSettingsKept kept;
    const TorchSettings before = TorchSettings::of_process();
    ASSERT_FALSE(changes()[number].is_made());
    const Program program = changing_program(static_cast<int64_t>(number));
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Cluster cluster(Seed{seed}, program, {.faults = FaultLevel::hostile});
      cluster.run();
      EXPECT_FALSE(changes()[number].is_made()) << "before the cluster goes";
    }
    EXPECT_FALSE(changes()[number].is_made());
    EXPECT_EQ(TorchSettings::of_process(), before);
  }
}

TEST(TorchSettings, AreThoseOfTheTestInANewLife) {
  // A crash takes them, as it takes the process: the next life begins as the first one did.
  const TorchSettingsKept kept;
  std::vector<bool> seen;
  Program program{FunctionRegistry()};
  program.worker("changer", [&seen](Worker& worker) {
    seen.push_back(sees_change(0));
    changes()[0].make();
    worker.sleep(seconds(1));
  });
  program.worker("other", [](Worker& worker) { worker.sleep(seconds(1)); });
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  ASSERT_TRUE(cluster.run_until([&] { return !seen.empty(); }));
  EXPECT_FALSE(sees_change(0));
  cluster.advance(milliseconds(500));
  cluster.crash("changer");
  EXPECT_FALSE(sees_change(0));
  cluster.restart("changer");
  (void)cluster.try_run();
  EXPECT_EQ(seen, (std::vector<bool>{false, false}));
  EXPECT_FALSE(sees_change(0));
}

TEST(TorchSettings, ThatTheTestChangesAreTheNewBeginning) {
  // Between the making of a cluster and its run, between two parts of a run, and in an act of it.
  const TorchSettingsKept kept;
  std::vector<c10::ScalarType> types;
  const auto look = [&types] { types.push_back(at::ones({1}).scalar_type()); };
  Program program{FunctionRegistry()};
  program.worker("watcher", [&look](Worker& worker) {
    for (int i = 0; i < 3; ++i) {
      look();
      worker.sleep(seconds(1));
    }
    set_default_dtype(at::kBFloat16);
    look();
  });
  program.worker("other");
  Cluster cluster(Seed{1}, program, {.faults = FaultLevel::none});
  set_default_dtype(at::kDouble);
  cluster.at(milliseconds(1500), [] { set_default_dtype(at::kFloat); });
  cluster.advance(milliseconds(500));
  set_default_dtype(at::kHalf);
  cluster.run();
  look();
  EXPECT_EQ(types, (std::vector<c10::ScalarType>{at::kDouble, at::kHalf, at::kFloat, at::kBFloat16,
                                                 at::kFloat}));
}

at::Tensor as_it_is(const at::Tensor& tensor) { return tensor; }

TEST(TorchSettings, AreInTheFingerprintOfWhatTheyCompute) {
  // Goal: the same seed and program give the same run, whatever ran before. Method: runs in which a
  // worker computes with its own default dtype, or not, one after the other.
  const TorchSettingsKept kept;
  const auto fingerprint = [](bool changes_dtype) {
    FunctionRegistry registry;
    registry.function("as_it_is", &as_it_is);
    Program program(registry);
    program.worker("changer", [changes_dtype](Worker& worker) {
      if (changes_dtype) set_default_dtype(at::kDouble);
      EXPECT_EQ(worker.rpc_sync("other", &as_it_is, at::ones({3}) / 3).scalar_type(),
                changes_dtype ? at::kDouble : at::kFloat);
    });
    program.worker("other");
    Cluster cluster(Seed{5}, program);
    return cluster.run().fingerprint;
  };
  const std::string plain = fingerprint(false);
  const std::string changed = fingerprint(true);
  EXPECT_NE(plain, changed);
  EXPECT_EQ(fingerprint(false), plain);
  EXPECT_EQ(fingerprint(true), changed);
}

}  // namespace
}  // namespace rehearsal::sim
