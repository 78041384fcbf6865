#include "sim/world/torch_settings.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/ScalarTypeToTypeMeta.h>
#include <torch/csrc/autograd/anomaly_mode.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>

#include "sim/world/precision_calls.h"

namespace rehearsal::sim {
namespace {

using at::Context;
using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;
using torch::autograd::AnomalyMode;

// One of them, as a number.
struct Setting {
  int64_t (*read)();
  void (*write)(int64_t value);
};

// One that a pair of member functions gets and sets.
template <auto get, auto set>
constexpr Setting setting() {
  using Value = std::remove_cvref_t<decltype((at::globalContext().*get)())>;
  return {[] { return static_cast<int64_t>((at::globalContext().*get)()); },
          [](int64_t value) { (at::globalContext().*set)(static_cast<Value>(value)); }};
}

// ---- those that are more than one number ------------------------------------------

constexpr int64_t kNone = std::numeric_limits<int64_t>::min();  // of optional ones

constexpr Setting kDefaultDtype = {
    [] { return static_cast<int64_t>(c10::get_default_dtype_as_scalartype()); },
    [](int64_t value) {
      c10::set_default_dtype(c10::scalarTypeToTypeMeta(static_cast<c10::ScalarType>(value)));
    }};

constexpr Setting kThreads = {[] { return static_cast<int64_t>(at::get_num_threads()); },
                              [](int64_t value) { at::set_num_threads(static_cast<int>(value)); }};

constexpr Setting kAnomaly = {
    [] {
      return int64_t{AnomalyMode::is_enabled()} + 2 * int64_t{AnomalyMode::should_check_nan()};
    },
    [](int64_t value) { AnomalyMode::set_enabled(value % 2 == 1, value / 2 == 1); }};

constexpr Setting kDeterministic = {
    [] {
      return int64_t{at::globalContext().deterministicAlgorithms()} +
             2 * int64_t{at::globalContext().deterministicAlgorithmsWarnOnly()};
    },
    [](int64_t value) {
      at::globalContext().setDeterministicAlgorithms(value % 2 == 1, value / 2 == 1);
    }};

// A backend of attention is a byte, of which 0 is the one that stands for an error.
constexpr Setting kAttentionOrder = {
    [] {
      int64_t bytes = 0;
      for (const at::SDPBackend backend : at::globalContext().sDPPriorityOrder())
        bytes = bytes << 8 | (static_cast<int64_t>(backend) + 1);
      return bytes;
    },
    [](int64_t bytes) {
      std::vector<int64_t> order(at::num_sdp_backends);
      for (auto backend = order.rbegin(); backend != order.rend(); ++backend, bytes >>= 8)
        *backend = (bytes & 0xff) - 1;
      at::globalContext().setSDPPriorityOrder(order);
    }};

constexpr Setting kCarveout = {
    [] {
      return int64_t{at::globalContext()._SMCarveout_EXPERIMENTAL().value_or(0)} +
             (at::globalContext()._SMCarveout_EXPERIMENTAL() ? 0 : kNone);
    },
    [](int64_t value) {
      at::globalContext()._setSMCarveout_EXPERIMENTAL(
          value == kNone ? std::nullopt : std::optional(static_cast<int32_t>(value)));
    }};

constexpr Setting kSparseInvariants = {
    [] {
      const std::optional<bool> checked = at::globalContext().checkSparseTensorInvariants();
      return checked ? int64_t{*checked} : kNone;
    },
    [](int64_t value) {
      at::globalContext().setCheckSparseTensorInvariants(
          value == kNone ? std::nullopt : std::optional(value == 1));
    }};

// 0: less precision and a split are allowed, 1: the split only, 2: neither.
constexpr Setting kHalfReduction = {
    [] { return static_cast<int64_t>(at::globalContext().allowFP16ReductionCuBLAS()); },
    [](int64_t value) { at::globalContext().setAllowFP16ReductionCuBLAS(value == 0, value != 2); }};
constexpr Setting kBfloatReduction = {
    [] { return static_cast<int64_t>(at::globalContext().allowBF16ReductionCuBLAS()); },
    [](int64_t value) { at::globalContext().setAllowBF16ReductionCuBLAS(value == 0, value != 2); }};

// ---- precisions of float32 --------------------------------------------------------

// LibTorch tells nothing of an older setting that contradicts the newer ones, which then count.
template <class F>
int64_t unless_contradicted(F read) {
  try {
    return static_cast<int64_t>(read());
  } catch (const c10::Error&) {
    return kNone;
  }
}

constexpr Setting kMatmulPrecision = {
    [] { return unless_contradicted([] { return at::globalContext().float32MatmulPrecision(); }); },
    [](int64_t value) {
      constexpr std::array<const char*, 3> kNames = {"highest", "high", "medium"};
      if (value != kNone) at::globalContext().setFloat32MatmulPrecision(kNames.at(value));
    }};

constexpr Setting kCudnnPrecision = {
    [] { return unless_contradicted([] { return at::globalContext().allowTF32CuDNN(); }); },
    [](int64_t value) {
      if (value != kNone) at::globalContext().setAllowTF32CuDNN(value == 1);
    }};

// LibTorch tells which precision counts: an operation's own, or else its backend's, or else that of
// all. An equal one is taken for that of the others.
template <Float32Backend backend, Float32Op op>
constexpr Setting precision() {
  return {[] {
            const auto of = [](Float32Backend of_backend, Float32Op of_op) {
              return at::globalContext().float32Precision(of_backend, of_op);
            };
            const Float32Precision counts = of(backend, op);
            if (backend == Float32Backend::GENERIC) return static_cast<int64_t>(counts);
            const Float32Precision above =
                of(op == Float32Op::ALL ? Float32Backend::GENERIC : backend, Float32Op::ALL);
            return static_cast<int64_t>(counts == above ? Float32Precision::NONE : counts);
          },
          [](int64_t value) {
            at::globalContext().setFloat32Precision(backend, op,
                                                    static_cast<Float32Precision>(value));
          }};
}

// ---- all --------------------------------------------------------------------------

// One that sets others, too, stands before them.
constexpr Setting kSettings[] = {
    kDefaultDtype,
    kThreads,
    kAnomaly,
    kDeterministic,
    kAttentionOrder,
    kCarveout,
    kSparseInvariants,
    kHalfReduction,
    kBfloatReduction,
    setting<&Context::deterministicFillUninitializedMemory,
            &Context::setDeterministicFillUninitializedMemory>(),
    setting<&Context::userEnabledMkldnn, &Context::setUserEnabledMkldnn>(),
    setting<&Context::deterministicMkldnn, &Context::setDeterministicMkldnn>(),
    setting<&Context::userEnabledNNPACK, &Context::setUserEnabledNNPACK>(),
    setting<&Context::userEnabledCuDNN, &Context::setUserEnabledCuDNN>(),
    setting<&Context::deterministicCuDNN, &Context::setDeterministicCuDNN>(),
    setting<&Context::benchmarkCuDNN, &Context::setBenchmarkCuDNN>(),
    setting<&Context::benchmarkLimitCuDNN, &Context::setBenchmarkLimitCuDNN>(),
    setting<&Context::immediateMiopen, &Context::setImmediateMiopen>(),
    setting<&Context::userEnabledFlashSDP, &Context::setSDPUseFlash>(),
    setting<&Context::userEnabledFA3SDP, &Context::setSDPUseFA3>(),
    setting<&Context::userEnabledMemEfficientSDP, &Context::setSDPUseMemEfficient>(),
    setting<&Context::userEnabledMathSDP, &Context::setSDPUseMath>(),
    setting<&Context::userEnabledCuDNNSDP, &Context::setSDPUseCuDNN>(),
    setting<&Context::userEnabledOverrideableSDP, &Context::setSDPUseOverrideable>(),
    setting<&Context::allowFP16BF16ReductionMathSDP, &Context::setAllowFP16BF16ReductionMathSDP>(),
    setting<&Context::linalgPreferredBackend, &Context::setLinalgPreferredBackend>(),
    setting<&Context::blasPreferredBackend, &Context::setBlasPreferredBackend>(),
    setting<&Context::getROCmFAPreferredBackend, &Context::setROCmFAPreferredBackend>(),
    setting<&Context::allowFP16AccumulationCuBLAS, &Context::setAllowFP16AccumulationCuBLAS>(),
    setting<&Context::allowFP16ReductionCPU, &Context::setAllowFP16ReductionCPU>(),
    setting<&Context::qEngine, &Context::setQEngine>(),
    setting<&Context::releaseWeightsWhenPrepacking, &Context::setReleaseWeightsWhenPrepacking>(),
    setting<&Context::areVmapFallbackWarningsEnabled, &Context::setDisplayVmapFallbackWarnings>(),
    setting<&Context::warnOnAccumulateGradStreamMismatch,
            &Context::setWarnOnAccumulateGradStreamMismatch>(),
    kMatmulPrecision,
    kCudnnPrecision,
    precision<Float32Backend::GENERIC, Float32Op::ALL>(),
    precision<Float32Backend::MKLDNN, Float32Op::ALL>(),
    precision<Float32Backend::MKLDNN, Float32Op::CONV>(),
    precision<Float32Backend::MKLDNN, Float32Op::RNN>(),
    precision<Float32Backend::MKLDNN, Float32Op::MATMUL>(),
    precision<Float32Backend::CUDA, Float32Op::ALL>(),
    precision<Float32Backend::CUDA, Float32Op::CONV>(),
    precision<Float32Backend::CUDA, Float32Op::RNN>(),
    precision<Float32Backend::CUDA, Float32Op::MATMUL>(),
};

// The settings that lie in the context itself, to be compared and never read: before them are flags
// that are none. Only the precisions of float32 lie elsewhere.
std::span<const std::byte> bytes_of_context() {
  constexpr size_t kFlags = sizeof(std::array<c10::once_flag, c10::COMPILE_TIME_MAX_DEVICE_TYPES>);
  static_assert(kFlags < sizeof(Context));
  const auto* const all = reinterpret_cast<const std::byte*>(&at::globalContext());
  return std::span(all, sizeof(Context)).subspan(kFlags);
}

}  // namespace

// ---- all of them, as values -------------------------------------------------------

TorchSettings TorchSettings::of_process() {
  TorchSettings settings;
  settings.values_.reserve(std::size(kSettings));
  for (const Setting& setting : kSettings) settings.values_.push_back(setting.read());
  return settings;
}

void TorchSettings::install() const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (kSettings[i].read() != values_[i]) kSettings[i].write(values_[i]);
}

// ---- outside of all lives ---------------------------------------------------------

void OuterSettings::look() {
  if (life_runs_ || are_there()) return;
  settings_ = TorchSettings::of_process();
  remember();
}

bool OuterSettings::are_there() const {
  return std::memcmp(bytes_of_context().data(), bytes_.data(), bytes_.size()) == 0 &&
         static_cast<int8_t>(c10::get_default_dtype_as_scalartype()) == dtype_ &&
         at::get_num_threads() == threads_ && AnomalyMode::is_enabled() == anomaly_ &&
         AnomalyMode::should_check_nan() == checks_nan_ && precision_calls() == precision_calls_;
}

void OuterSettings::remember() {
  const std::span<const std::byte> bytes = bytes_of_context();
  bytes_.assign(bytes.begin(), bytes.end());
  dtype_ = static_cast<int8_t>(c10::get_default_dtype_as_scalartype());
  threads_ = at::get_num_threads();
  anomaly_ = AnomalyMode::is_enabled();
  checks_nan_ = AnomalyMode::should_check_nan();
  precision_calls_ = precision_calls();
}

// ---- within one -------------------------------------------------------------------

LifeSettings::LifeSettings(OuterSettings* outer, std::unique_ptr<TorchSettings>& own)
    : outer_(outer != nullptr && outer->life_runs_ ? nullptr : outer), own_(own) {
  if (outer_ == nullptr) return;
  outer_->life_runs_ = true;
  if (own_ != nullptr) own_->install();
}

LifeSettings::~LifeSettings() {
  if (outer_ == nullptr) return;
  outer_->life_runs_ = false;
  if (own_ == nullptr && outer_->are_there()) [[likely]]
    return;
  TorchSettings now = TorchSettings::of_process();
  if (now == outer_->settings_) {
    own_.reset();
  } else {
    own_ = std::make_unique<TorchSettings>(std::move(now));
    outer_->settings_.install();
  }
  outer_->remember();
}

}  // namespace rehearsal::sim
