#pragma once

namespace rehearsal::real {

// Whether LibTorch's own autograd engine runs below on the calling thread's stack. It keeps
// thread-local state that cannot be swapped, so nothing may park there.
[[nodiscard]] bool inside_torch_engine();

}  // namespace rehearsal::real
