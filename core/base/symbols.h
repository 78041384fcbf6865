#pragma once

#include <cstdint>
#include <string>
#include <typeinfo>

// The names that people know code by, for errors and stacks: the same in every process of one
// build.
namespace rehearsal {

// "rehearsal::RRef<Model>".
[[nodiscard]] std::string type_name(const std::type_info& type);

// As a compiler writes names into symbol tables, in readable form; as it is if it is no such name.
[[nodiscard]] std::string demangled(const char* name);

// The functions of this program's file, those included that no other file may see. Reads the file:
// for what has failed anyway.
class ProgramSymbols {
 public:
  ProgramSymbols();

  // The function that has this address in it: "storm::travel(CallContext&, Journey const&)"; the
  // nearest symbol before it if it is in a library. Empty if it is in none that has a name.
  [[nodiscard]] std::string function_at(const void* code) const;

 private:
  template <class T>
  [[nodiscard]] T read(uint64_t offset) const;
  // By its address in the file.
  [[nodiscard]] std::string name_at(uint64_t address) const;

  std::string bytes_;  // empty: the file cannot be read
};

}  // namespace rehearsal
