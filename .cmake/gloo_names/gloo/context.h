#pragma once

#include <chrono>

// The wheel of LibTorch has gloo in it, but none of gloo's headers. Of these, the header of
// c10d::ProcessGroupGloo needs the names of some types, which it holds pointers to: they are
// declared in this folder. Nothing of them is made here, and nothing but `setTimeout` called, by a
// function of that header which nobody calls. real_net/CMakeLists.txt asks the linker whether the
// LibTorch at hand has what we use.
namespace gloo {
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};
}  // namespace gloo
