#include "sim/world/call_stack.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

namespace rehearsal::sim {
namespace {

constexpr int kFramesMax = 64;

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

// The symbol table of this program's file: it also has the functions that no other file may see,
// which the tables in memory lack.
class ProgramSymbols {
 public:
  ProgramSymbols() {
    std::ifstream file("/proc/self/exe", std::ios::binary | std::ios::ate);
    bytes_.resize(file ? static_cast<size_t>(file.tellg()) : 0);
    file.seekg(0);
    file.read(bytes_.data(), static_cast<std::streamsize>(bytes_.size()));
    if (!file || bytes_.size() < sizeof(Elf64_Ehdr) ||
        std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0)
      bytes_.clear();
  }

  // The name of the function at this address of the file; empty if it is in none.
  [[nodiscard]] std::string name_at(uint64_t address) const {
    if (bytes_.empty()) return {};
    const auto header = read<Elf64_Ehdr>(0);
    for (uint64_t i = 0; i < header.e_shnum; ++i) {
      const auto section = read<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
      if (section.sh_type != SHT_SYMTAB) continue;
      const auto names =
          read<Elf64_Shdr>(header.e_shoff + uint64_t{section.sh_link} * sizeof(Elf64_Shdr));
      return name_in(section, names, address);
    }
    return {};
  }

 private:
  template <class T>
  [[nodiscard]] T read(uint64_t offset) const {
    T value{};
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  [[nodiscard]] std::string name_in(const Elf64_Shdr& symbols, const Elf64_Shdr& names,
                                    uint64_t address) const {
    for (uint64_t at = 0; at < symbols.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(symbols.sh_offset + at);
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || address < symbol.st_value ||
          address >= symbol.st_value + symbol.st_size)
        continue;
      const uint64_t name = names.sh_offset + symbol.st_name;
      return name < bytes_.size() ? bytes_.data() + name : "";
    }
    return {};
  }

  std::string bytes_;
};

// `return_address` lies behind the call, perhaps already in the next function.
std::string describe(const ProgramSymbols& program, void* return_address) {
  const void* call = static_cast<const char*>(return_address) - 1;
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(call, &info, &extra, RTLD_DL_LINKMAP) == 0) return "?";
  const auto* map = static_cast<const link_map*>(extra);
  const uint64_t offset = reinterpret_cast<uint64_t>(call) - (map != nullptr ? map->l_addr : 0);
  const bool ours = map != nullptr && map->l_name[0] == '\0';
  const std::string name = ours ? program.name_at(offset) : "";
  if (!name.empty()) return demangled(name.c_str());
  if (info.dli_sname != nullptr) return demangled(info.dli_sname);
  std::ostringstream text;
  text << (info.dli_fname != nullptr ? info.dli_fname : "?") << "+0x" << std::hex << offset;
  return text.str();
}

}  // namespace

std::vector<std::string> call_stack() {
  std::array<void*, kFramesMax> frames{};
  const int count = backtrace(frames.data(), kFramesMax);
  const ProgramSymbols program;
  std::vector<std::string> names;
  for (int i = 1; i < count; ++i) names.push_back(describe(program, frames[i]));
  return names;
}

}  // namespace rehearsal::sim
