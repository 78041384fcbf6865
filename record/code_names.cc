#include "record/code_names.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal::record {
namespace {

const void* executable_base() {
  static const int here = 0;
  Dl_info info{};
  return dladdr(&here, &info) != 0 ? info.dli_fbase : nullptr;
}

}  // namespace

uint64_t CodeNames::word_of(const Task& task) {
  const uint64_t word = word_of_type(task.type());
  return task.tag() == 0 ? word : mix(word, task.tag());
}

uint64_t CodeNames::word_of_type(const void* type) {
  const auto [place, fresh] = words_.emplace(type, 0);
  if (!fresh) return place->second;
  Dl_info info{};
  const bool known = type != nullptr && dladdr(type, &info) != 0;
  const auto address = reinterpret_cast<uintptr_t>(type);
  const std::string_view file = known ? info.dli_fname : "";
  const uint64_t offset = known ? address - reinterpret_cast<uintptr_t>(info.dli_fbase) : 0;
  // The executable may have been given another name since.
  const bool in_executable = known && info.dli_fbase == executable_base();
  const std::string_view name = in_executable ? "" : file.substr(file.rfind('/') + 1);
  place->second = mix(hash_text(name), offset);
  return place->second;
}

std::string build_of_this_process() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  std::vector<char> bytes(size_t{1} << 20);
  uint64_t hash = 0;
  while (file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || file.gcount() > 0)
    hash = hash_bytes(bytes.data(), static_cast<size_t>(file.gcount()), hash);
  if (!file.eof()) throw std::runtime_error("this program's own file cannot be read");
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(hash));
  return text.data();
}

}  // namespace rehearsal::record
