#include "core/fibers/thread_state.h"

#include <ATen/FuncTorchTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <ATen/ThreadLocalState.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <utility>

namespace rehearsal::fibers {
namespace {

using c10::impl::LocalDispatchKeySet;

// Keys that NoGradGuard, InferenceMode and the AutoDispatchBelow… guards change: these have no
// state beside the keys. Every other key comes with extras.
constexpr c10::DispatchKeySet kPlainKeys = c10::autograd_dispatch_keyset_with_ADInplaceOrView;

bool keys_have_extras(const LocalDispatchKeySet& keys) {
  const uint64_t included = (keys.included_ ^ c10::default_included_set).raw_repr();
  const uint64_t excluded = (keys.excluded_ ^ c10::default_excluded_set).raw_repr();
  return ((included | excluded) & ~kPlainKeys.raw_repr()) != 0;
}

// Autocast that is on shows in the keys. A dtype may also be chosen before it is turned on; that is
// noticed for the two devices that have it in common use.
bool autocast_differs() {
  return at::autocast::get_autocast_dtype(at::kCPU) != at::kBFloat16 ||
         at::autocast::get_autocast_dtype(at::kCUDA) != at::kHalf;
}

int autocast_nesting() {
  const int deeper = at::autocast::increment_nesting();
  at::autocast::decrement_nesting();
  return deeper - 1;
}

void set_autocast_nesting(int nesting) {
  int present = autocast_nesting();
  for (; present < nesting; ++present) at::autocast::increment_nesting();
  for (; present > nesting; --present) at::autocast::decrement_nesting();
}

}  // namespace

// Autocast's cache switch and nesting are the parts that at::ThreadLocalState leaves out.
struct ThreadState::Extras {
  at::ThreadLocalState whole;
  bool autocast_cache = at::autocast::is_autocast_cache_enabled();
  int autocast_nesting = fibers::autocast_nesting();

  void install() const {
    at::ThreadLocalState::setThreadLocalState(whole);
    at::autocast::set_autocast_cache_enabled(autocast_cache);
    set_autocast_nesting(autocast_nesting);
  }

  // Made by the thread that starts the program, before anything can have changed its state.
  static const Extras kDefault;
};

const ThreadState::Extras ThreadState::Extras::kDefault;

ThreadState::Places::Places()
    : autograd(&c10::AutogradState::get_tls_state()),
      keys(&c10::impl::raw_local_dispatch_key_set),
      recording(&at::get_record_function_tls_()),
      hooks(&at::SavedTensorDefaultHooks::get_tls_state()),
      functorch(&at::functorch::functorchTLSAccessor()) {}

const ThreadState::Places& ThreadState::Places::of_thread() {
  static thread_local const Places places;
  return places;
}

bool ThreadState::Places::have_extras() const {
  return keys_have_extras(*keys) || !recording->tls_record_function_enabled_ ||
         !recording->sorted_tls_callbacks_.empty() || !hooks->stack.empty() ||
         hooks->disabled_error_message.has_value() || hooks->is_tracing || *functorch != nullptr ||
         c10::ThreadLocalDebugInfo::current() != nullptr || autocast_differs();
}

ThreadState::ThreadState()
    : autograd_(/*grad_mode=*/true, /*inference_mode=*/false, /*fw_grad_mode=*/true,
                /*multithreading_enabled=*/true),
      keys_(c10::impl::PODLocalDispatchKeySet{}) {}

ThreadState::~ThreadState() = default;

bool ThreadState::thread_has_default() {
  const Places& places = Places::of_thread();
  const c10::AutogradState& autograd = *places.autograd;
  return autograd.get_grad_mode() && !autograd.get_inference_mode() &&
         autograd.get_fw_grad_mode() && autograd.get_multithreading_enabled() &&
         !autograd.get_view_replay_enabled() && !autograd.get_graph_exec_group() &&
         places.keys->included_ == 0 && places.keys->excluded_ == 0 && !places.have_extras();
}

void ThreadState::swap_with_thread() {
  const Places& places = Places::of_thread();
  if (extras_ != nullptr || places.have_extras()) [[unlikely]]
    swap_extras(places);
  std::swap(*places.autograd, autograd_);
  const LocalDispatchKeySet present = *places.keys;
  if (present.included_ == keys_.included_ && present.excluded_ == keys_.excluded_) return;
  c10::impl::_force_tls_local_dispatch_key_set(keys_);
  keys_ = present;
}

// Leaves grad mode and keys, which the caller swaps, as they are.
void ThreadState::swap_extras(const Places& places) {
  const c10::AutogradState autograd = *places.autograd;
  const LocalDispatchKeySet keys = *places.keys;
  auto present = places.have_extras() ? std::make_unique<Extras>() : nullptr;
  (extras_ != nullptr ? *extras_ : Extras::kDefault).install();
  extras_ = std::move(present);
  *places.autograd = autograd;
  c10::impl::_force_tls_local_dispatch_key_set(keys);
}

}  // namespace rehearsal::fibers
