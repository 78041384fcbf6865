#include "real_net/worker/cuda_ipc.h"

#include <c10/core/DeviceGuard.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include <cstring>
#include <optional>
#include <utility>

namespace rehearsal::real {
namespace {

// Words of the driver's header, which need not be there when this is compiled.
using Outcome = int;  // CUresult
constexpr Outcome kSuccess = 0;
using Address = unsigned long long;  // CUdeviceptr
struct Handle {                      // CUipcMemHandle
  char bytes[64];
};
constexpr unsigned kWithPeerAccess = 1;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS

// The functions of the driver that are needed.
struct Driver {
  Outcome (*get_handle)(Handle*, Address) = nullptr;
  Outcome (*open)(Address*, Handle, unsigned) = nullptr;
  Outcome (*close)(Address) = nullptr;
  Outcome (*range)(Address* begin, size_t* bytes, Address) = nullptr;
  Outcome (*text)(Outcome, const char**) = nullptr;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Stays loaded, as LibTorch's part for CUDA does.
std::optional<Driver> load_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  Driver driver;
  const bool whole = library != nullptr && find(library, "cuIpcGetMemHandle", driver.get_handle) &&
                     find(library, "cuIpcOpenMemHandle_v2", driver.open) &&
                     find(library, "cuIpcCloseMemHandle", driver.close) &&
                     find(library, "cuMemGetAddressRange_v2", driver.range) &&
                     find(library, "cuGetErrorString", driver.text);
  return whole ? std::optional(driver) : std::nullopt;
}

class CudaIpc final : public IpcMemory {
 public:
  explicit CudaIpc(const Driver& driver) : driver_(driver) {}

  Result<IpcPlace> share(const void* address, c10::Device device) override {
    const c10::DeviceGuard guard(device);
    const auto at = reinterpret_cast<Address>(address);
    Address begin = 0;
    size_t bytes = 0;
    Handle handle{};
    Outcome outcome = driver_.range(&begin, &bytes, at);
    if (outcome == kSuccess) outcome = driver_.get_handle(&handle, begin);
    if (outcome != kSuccess) return failed("share memory with other processes", outcome);
    return IpcPlace{.handle = std::string(handle.bytes, sizeof handle.bytes), .offset = at - begin};
  }

  Result<IpcMapping> map(const std::string& handle_bytes, c10::Device device) override {
    Handle handle{};
    if (handle_bytes.size() != sizeof handle.bytes)
      return wrong_arguments("a handle of CUDA's memory has " +
                             std::to_string(sizeof handle.bytes) + " bytes");
    std::memcpy(handle.bytes, handle_bytes.data(), sizeof handle.bytes);
    const c10::DeviceGuard guard(device);
    Address begin = 0;
    if (const Outcome outcome = driver_.open(&begin, handle, kWithPeerAccess); outcome != kSuccess)
      return failed("map memory of another process", outcome);
    IpcMapping mapping{.begin = {reinterpret_cast<void*>(begin), Unmap{driver_, device}}};
    Address base = 0;
    size_t bytes = 0;
    if (const Outcome outcome = driver_.range(&base, &bytes, begin); outcome != kSuccess)
      return failed("say how large memory of another process is", outcome);
    mapping.bytes = bytes;
    return mapping;
  }

 private:
  struct Unmap {
    Driver driver;
    c10::Device device;
    void operator()(void* begin) const {
      try {
        const c10::DeviceGuard guard(device);
        (void)driver.close(reinterpret_cast<Address>(begin));
      } catch (const c10::Error&) {
        return;  // The device has failed: its memory ends with the process.
      }
    }
  };

  [[nodiscard]] Error failed(const std::string& what, Outcome outcome) const {
    const char* why = nullptr;
    (void)driver_.text(outcome, &why);
    return wrong_arguments("CUDA cannot " + what + ": " +
                           (why != nullptr ? why : "error " + std::to_string(outcome)));
  }

  const Driver driver_;
};

}  // namespace

std::shared_ptr<IpcMemory> cuda_ipc() {
  static const std::optional<Driver> driver = load_driver();
  return driver ? std::make_shared<CudaIpc>(*driver) : nullptr;
}

}  // namespace rehearsal::real
