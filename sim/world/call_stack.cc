#include "sim/world/call_stack.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <torch/csrc/profiler/unwind/unwind.h>

#include <array>
#include <exception>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/symbols.h"

namespace rehearsal::sim {
namespace {

constexpr int kFramesMax = 64;

constexpr size_t kNameBytesMax = 160;

// No longer than people read.
std::string shortened(std::string name) {
  constexpr std::string_view kLongString =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  for (size_t at = name.find(kLongString); at != std::string::npos; at = name.find(kLongString, at))
    name.replace(at, kLongString.size(), "std::string");
  if (name.size() > kNameBytesMax) name.replace(kNameBytesMax, std::string::npos, "…");
  return name;
}

// `return_address` lies behind the call, perhaps already in the next function.
std::string describe(const ProgramSymbols& program, void* return_address) {
  const void* call = static_cast<const char*>(return_address) - 1;
  std::string name = program.function_at(call);
  if (!name.empty()) return shortened(std::move(name));
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(call, &info, &extra, RTLD_DL_LINKMAP) == 0) return "?";
  const auto* map = static_cast<const link_map*>(extra);
  std::ostringstream text;
  text << (info.dli_fname != nullptr ? info.dli_fname : "?") << "+0x" << std::hex
       << reinterpret_cast<uint64_t>(call) - (map != nullptr ? map->l_addr : 0);
  return text.str();
}

// Where the compiler has left line numbers; LibTorch reads them. Empty if it cannot.
std::vector<torch::unwind::Frame> lines_of(const std::vector<void*>& calls) {
  try {
    return torch::unwind::symbolize(calls, torch::unwind::Mode::fast);
  } catch (const std::exception&) {
    return {};
  }
}

// A file without line numbers is given with an offset in their place. One that was compiled by its
// absolute name comes with the folder of the compilation before it.
std::string place_of(const torch::unwind::Frame& frame) {
  constexpr uint64_t kLinesMax = 1'000'000;
  std::string file = frame.filename;
  const bool has_line = frame.lineno > 0 && frame.lineno < kLinesMax && frame.funcname != "??" &&
                        file.find(".so") == std::string::npos &&
                        std::filesystem::path(file).has_extension();
  if (!has_line) return {};
  if (const size_t doubled = file.find("//"); doubled != std::string::npos)
    file.erase(0, doubled + 1);
  std::error_code unknown;
  const std::string here = std::filesystem::current_path(unknown).string() + "/";
  if (file.starts_with(here)) file.erase(0, here.size());
  return " at " + file + ":" + std::to_string(frame.lineno);
}

}  // namespace

std::vector<std::string> call_stack() {
  std::array<void*, kFramesMax> frames{};
  const int count = backtrace(frames.data(), kFramesMax);
  return described(std::span<void* const>(frames).subspan(1, static_cast<size_t>(count - 1)));
}

std::vector<std::string> described(std::span<void* const> return_addresses) {
  std::vector<void*> calls;
  for (void* const address : return_addresses) calls.push_back(static_cast<char*>(address) - 1);
  const std::vector<torch::unwind::Frame> lines = lines_of(calls);
  const ProgramSymbols program;
  std::vector<std::string> names;
  for (size_t i = 0; i < return_addresses.size(); ++i) {
    names.push_back(describe(program, return_addresses[i]));
    if (i < lines.size()) names.back() += place_of(lines[i]);
  }
  return names;
}

}  // namespace rehearsal::sim
