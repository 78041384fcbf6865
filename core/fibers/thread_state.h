#pragma once

#include <c10/core/AutogradState.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <memory>
#include <optional>

namespace at {
struct RecordFunctionTLS;
namespace functorch {
struct FuncTorchTLSBase;
}
namespace impl {
struct SavedTensorDefaultHooksTLS;
}
}  // namespace at

namespace rehearsal::fibers {

// The state that LibTorch keeps for each thread and code can change while it runs: grad mode,
// inference mode, dispatch keys, autocast, record-function callbacks, debug info, saved-tensor
// hooks, functorch. Two fibers of one thread must not see each other's, so each switch swaps it.
//
// Nearly always only grad mode and the dispatch keys differ from the default; these two are
// swapped directly. The rest (the extras) costs about 1 µs and is swapped only where it differs
// from the default, which is looked up each time.
//
// Not covered, because LibTorch offers no way or it is no state of a computation: the numbering of
// autograd nodes, device and stream guards of CUDA, warning handlers, and what only Python can set.
class ThreadState {
 public:
  // LibTorch's default: what a new thread has.
  ThreadState();
  ~ThreadState();
  ThreadState(const ThreadState&) = delete;
  ThreadState& operator=(const ThreadState&) = delete;

  // Gives the calling thread this state and holds what the thread had. Always by the same thread.
  void swap_with_thread();

  // Whether the calling thread's state is the default.
  [[nodiscard]] static bool thread_has_default();

 private:
  struct Extras;

  // Where the thread keeps its state. Constant for a thread, and slow to ask for.
  struct Places {
    [[nodiscard]] static const Places& of_thread();
    Places();
    [[nodiscard]] bool have_extras() const;

    c10::AutogradState* autograd;
    const c10::impl::PODLocalDispatchKeySet* keys;
    const at::RecordFunctionTLS* recording;
    const at::impl::SavedTensorDefaultHooksTLS* hooks;
    const std::unique_ptr<at::functorch::FuncTorchTLSBase>* functorch;
  };

  void swap_extras(const Places& places);

  c10::AutogradState autograd_;
  c10::impl::LocalDispatchKeySet keys_;
  std::unique_ptr<Extras> extras_;  // null: default
};

// Sets LibTorch's thread-local state to the default for the guard's life: protocol code entered by
// a user's thread must not run under that user's NoGradGuard. No park may lie within its life, and
// what runs within it leaves the state as it found it.
class DefaultThreadState {
 public:
  DefaultThreadState() {
    if (ThreadState::thread_has_default()) return;
    before_.emplace();
    before_->swap_with_thread();
  }
  ~DefaultThreadState() {
    if (before_) before_->swap_with_thread();
  }
  DefaultThreadState(const DefaultThreadState&) = delete;
  DefaultThreadState& operator=(const DefaultThreadState&) = delete;

 private:
  std::optional<ThreadState> before_;  // empty: it was the default
};

}  // namespace rehearsal::fibers
