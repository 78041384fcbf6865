#include "record/code_names.h"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "core/base/hash.h"

namespace rehearsal::record {
namespace {

// The executable or library that an address belongs to. (dladdr looks through all of its symbols,
// too.)
std::optional<dl_find_object> object_of(const void* address) {
  dl_find_object object{};
  const bool found = _dl_find_object(const_cast<void*>(address), &object) == 0;
  return found ? std::optional(object) : std::nullopt;
}

bool is_in_executable(const dl_find_object& object) {
  static const int here = 0;
  const auto executable = object_of(&here);
  return executable && executable->dlfo_map_start == object.dlfo_map_start;
}

std::string hash_of_executable() {
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

}  // namespace

uint64_t CodeNames::word_of(const Task& task) {
  const uint64_t word = word_of_type(task.type());
  return task.tag() == 0 ? word : mix(word, task.tag());
}

uint64_t CodeNames::word_of_type(const void* type) {
  const auto [place, fresh] = words_.emplace(type, 0);
  if (!fresh) return place->second;
  std::string_view name;
  uint64_t offset = 0;
  if (const auto object = object_of(type)) {
    // The executable may have been given another name since.
    const std::string_view file =
        is_in_executable(*object) ? "" : std::string_view(object->dlfo_link_map->l_name);
    name = file.substr(file.rfind('/') + 1);
    offset =
        reinterpret_cast<uintptr_t>(type) - reinterpret_cast<uintptr_t>(object->dlfo_map_start);
  }
  place->second = mix(hash_text(name), offset);
  return place->second;
}

// Once: it has hundreds of megabytes.
std::string build_of_this_process() {
  static const std::string build = hash_of_executable();
  return build;
}

}  // namespace rehearsal::record
