#include "sim/world/precision_calls.h"

#include <ATen/Context.h>

#include <string>

namespace rehearsal::sim {
namespace {

// Of the thread, because a run has one.
thread_local uint64_t calls = 0;

}  // namespace

uint64_t precision_calls() { return calls; }

}  // namespace rehearsal::sim

// The replacement that the linker puts in the place of each member function, and the function
// itself; both take the object first. The names are the linker's;
// tests/sim/world/torch_settings_test.cc calls every one.
namespace rehearsal::sim::wrapped {

using at::Context;
using at::Float32Backend;
using at::Float32Op;
using at::Float32Precision;

void real_set_precision(Context* context, Float32Backend backend, Float32Op op,
                        Float32Precision precision)  //
    asm("__real__ZN2at7Context19setFloat32PrecisionENS_14Float32BackendENS_9Float32OpENS_"
        "16Float32PrecisionE");
void wrap_set_precision(Context* context, Float32Backend backend, Float32Op op,
                        Float32Precision precision)  //
    asm("__wrap__ZN2at7Context19setFloat32PrecisionENS_14Float32BackendENS_9Float32OpENS_"
        "16Float32PrecisionE");
void wrap_set_precision(Context* context, Float32Backend backend, Float32Op op,
                        Float32Precision precision) {
  ++calls;
  real_set_precision(context, backend, op, precision);
}

void real_set_matmul(Context* context, const std::string& precision)  //
    asm("__real__ZN2at7Context25setFloat32MatmulPrecisionERKNSt7__cxx1112basic_stringIcSt11char_"
        "traitsIcESaIcEEE");
void wrap_set_matmul(Context* context, const std::string& precision)  //
    asm("__wrap__ZN2at7Context25setFloat32MatmulPrecisionERKNSt7__cxx1112basic_stringIcSt11char_"
        "traitsIcESaIcEEE");
void wrap_set_matmul(Context* context, const std::string& precision) {
  ++calls;
  real_set_matmul(context, precision);
}

void real_set_cudnn(Context* context, bool allowed)  //
    asm("__real__ZN2at7Context17setAllowTF32CuDNNEb");
void wrap_set_cudnn(Context* context, bool allowed)  //
    asm("__wrap__ZN2at7Context17setAllowTF32CuDNNEb");
void wrap_set_cudnn(Context* context, bool allowed) {
  ++calls;
  real_set_cudnn(context, allowed);
}

void real_set_cublas(Context* context, bool allowed)  //
    asm("__real__ZN2at7Context18setAllowTF32CuBLASEb");
void wrap_set_cublas(Context* context, bool allowed)  //
    asm("__wrap__ZN2at7Context18setAllowTF32CuBLASEb");
void wrap_set_cublas(Context* context, bool allowed) {
  ++calls;
  real_set_cublas(context, allowed);
}

}  // namespace rehearsal::sim::wrapped
