#include "real_net/cuda_devices.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <linux/limits.h>

#include <array>
#include <optional>
#include <string>

namespace rehearsal::real {
namespace {

constexpr c10::DeviceType kCuda = c10::DeviceType::CUDA;

// Where the running LibTorch lies; the loader's own search, if that is not known.
std::string folder_of_libtorch() {
  void* const cpu = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (cpu == nullptr) return "";
  std::array<char, PATH_MAX> folder{};
  const bool known = dlinfo(cpu, RTLD_DI_ORIGIN, folder.data()) == 0;
  dlclose(cpu);
  return known ? std::string(folder.data()) + "/" : "";
}

// Stays for as long as the process: what it registers with LibTorch cannot be taken back.
std::optional<std::string> load() {
  if (c10::impl::hasDeviceGuardImpl(kCuda)) return std::nullopt;
  if (dlopen((folder_of_libtorch() + "libtorch_cuda.so").c_str(), RTLD_NOW | RTLD_GLOBAL) ==
      nullptr) {
    const char* const why = dlerror();
    return "LibTorch's part for CUDA cannot be loaded: " +
           std::string(why != nullptr ? why : "it is not there");
  }
  if (c10::impl::hasDeviceGuardImpl(kCuda)) return std::nullopt;
  return "libtorch_cuda.so knows no CUDA devices";
}

}  // namespace

Result<DevicesHere> cuda_devices() {
  if (const std::optional<std::string> why = load()) return wrong_arguments(*why);
  const int count = c10::impl::VirtualGuardImpl(kCuda).deviceCount();
  if (count == 0)
    return wrong_arguments(
        "this process has no CUDA device: nvidia-smi says which there are, and "
        "CUDA_VISIBLE_DEVICES which of them it may use");
  try {
    at::globalContext().lazyInitDevice(kCuda);
  } catch (const c10::Error& error) {
    return wrong_arguments(std::string("CUDA cannot be used: ") + error.what_without_backtrace());
  }
  return DevicesHere{.type = kCuda, .count = count};
}

}  // namespace rehearsal::real
