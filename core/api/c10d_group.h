#pragma once

#include <c10/util/intrusive_ptr.h>

#include <string>

#include "core/api/process_group.h"

namespace c10d {
class Backend;
class ProcessGroup;
class Store;
}  // namespace c10d

// LibTorch's own interfaces of collective operations, for code that is written against them. To use
// what these return, include the header that it needs of <torch/csrc/distributed/c10d/…>, with
// USE_DISTRIBUTED defined before.
namespace rehearsal {

// The group as a c10d::Backend. Its operations are those of the group, in its order beside others;
// Work::wait parks the calling stack, with the group's errors as RpcError. The future of a Work
// must not be waited for in a simulated cluster: it blocks the thread, of which there is one. An
// operation has the time of its group; one that brings a time of its own, and a reduction that the
// group does not know (of bits, or scaled), is refused with c10::Error. No recv from any rank.
[[nodiscard]] c10::intrusive_ptr<c10d::Backend> as_c10d_backend(const ProcessGroup& group);

// The same behind a c10d::ProcessGroup, for tensors in host memory.
[[nodiscard]] c10::intrusive_ptr<c10d::ProcessGroup> as_c10d_group(const ProcessGroup& group);

// A c10d::Store whose keys lie at one worker, which may be this one: whoever opens a store of the
// same name there has the same keys, for as long as that worker lives, and some worker that has
// opened it. Its functions park; those that wait for a key throw RpcError of kind timeout when the
// store's own time is up (Store::setTimeout, 300 s), and all throw peer_lost if the worker is lost,
// or has come back. There is a limit to how much a worker may put into the stores of another
// one (overloaded, core/collectives/README.md).
[[nodiscard]] c10::intrusive_ptr<c10d::Store> open_c10d_store(const WorkerAccess& worker,
                                                              const Target& at,
                                                              const std::string& name);

}  // namespace rehearsal
