#pragma once

#include "core/base/execution.h"

// LibTorch keeps one default CPU generator for each process. This file's source defines the
// function through which LibTorch asks for it, so that each execution draws from a stream of its
// own: what a call draws depends on the call, never on what else runs in the process.
namespace rehearsal::fibers {

// The execution that runs on the calling thread; null if none does.
[[nodiscard]] Execution* running_execution();

// The number of LibTorch's next autograd node on the calling thread when its execution last
// started, resumed, or had its nodes noted by whoever sets this.
[[nodiscard]] uint64_t& next_node_of_running();

// Makes `execution` (null: none) the running one of the calling thread until the guard ends: what
// is drawn and which autograd nodes are made meanwhile is its own. Held by whoever resumes an
// execution, around the resume; never across a park on the parking stack.
class ScopedExecution {
 public:
  explicit ScopedExecution(Execution* execution);
  ~ScopedExecution();
  ScopedExecution(const ScopedExecution&) = delete;
  ScopedExecution& operator=(const ScopedExecution&) = delete;

 private:
  Execution* const before_;
};

// Whether LibTorch really asks us: draws through ATen inside an execution and looks whether the
// execution's stream was used. False with a LibTorch that was linked statically or with symbolic
// binding; a program must then refuse to start. Draws from no stream that the program uses.
[[nodiscard]] bool default_generator_is_ours();

}  // namespace rehearsal::fibers
