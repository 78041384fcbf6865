#include "core/base/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

namespace rehearsal {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  return status == 0 && text ? text.get() : name;
}

std::string type_name(const std::type_info& type) { return demangled(type.name()); }

namespace {

// A part of a file.
std::string part_of(std::ifstream& file, uint64_t offset, uint64_t size) {
  std::string bytes(size, '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  return file ? bytes : std::string();
}

template <class T>
T part_of(std::ifstream& file, uint64_t offset) {
  T value{};
  const std::string bytes = part_of(file, offset, sizeof value);
  if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Where the names begin, and the symbols behind them.
struct Layout {
  uint64_t names_size = 0;
  uint64_t symbols_size = 0;
};

}  // namespace

// Of a program of hundreds of megabytes only the symbols and their names are read.
ProgramSymbols::ProgramSymbols() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto header = part_of<Elf64_Ehdr>(file, 0);
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = [&](uint64_t number) {
      return part_of<Elf64_Shdr>(file, header.e_shoff + number * sizeof(Elf64_Shdr));
    };
    const Elf64_Shdr symbols = section(i);
    if (symbols.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(symbols.sh_link);
    const Layout layout{.names_size = names.sh_size, .symbols_size = symbols.sh_size};
    std::string all(reinterpret_cast<const char*>(&layout), sizeof layout);
    all += part_of(file, names.sh_offset, names.sh_size);
    all += part_of(file, symbols.sh_offset, symbols.sh_size);
    if (file) bytes_ = std::move(all);
    return;
  }
}

template <class T>
T ProgramSymbols::read(uint64_t offset) const {
  T value{};
  if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof(T));
  return value;
}

std::string ProgramSymbols::name_at(uint64_t address) const {
  const auto layout = read<Layout>(0);
  const uint64_t first = sizeof layout + layout.names_size;
  for (uint64_t at = 0; at < layout.symbols_size; at += sizeof(Elf64_Sym)) {
    const auto symbol = read<Elf64_Sym>(first + at);
    if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || address < symbol.st_value ||
        address >= symbol.st_value + symbol.st_size)
      continue;
    return symbol.st_name < layout.names_size ? bytes_.data() + sizeof layout + symbol.st_name : "";
  }
  return {};
}

std::string ProgramSymbols::function_at(const void* code) const {
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(code, &info, &extra, RTLD_DL_LINKMAP) == 0) return {};
  const auto* map = static_cast<const link_map*>(extra);
  const bool ours = map != nullptr && map->l_name[0] == '\0';
  const std::string name =
      ours ? name_at(reinterpret_cast<uint64_t>(code) - map->l_addr) : std::string();
  if (!name.empty()) return demangled(name.c_str());
  return info.dli_sname != nullptr ? demangled(info.dli_sname) : std::string();
}

}  // namespace rehearsal
