#include "sim/world/fault_words.h"

#include <array>
#include <utility>

namespace rehearsal::sim {
namespace {

constexpr std::array<std::pair<std::string_view, FaultLevel>, 3> kLevels = {
    {{"none", FaultLevel::none}, {"mild", FaultLevel::mild}, {"hostile", FaultLevel::hostile}}};

constexpr std::array<std::pair<std::string_view, Restart>, 4> kRestarts = {
    {{"never", Restart::never},
     {"amnesia", Restart::amnesia},
     {"checkpoint", Restart::checkpoint},
     {"drawn", Restart::drawn}}};

template <class Table, class T>
std::string_view name_in(const Table& table, T value) {
  for (const auto& [name, known] : table)
    if (known == value) return name;
  return "?";
}

template <class T, class Table>
std::optional<T> named_in(const Table& table, std::string_view name) {
  for (const auto& [known, value] : table)
    if (known == name) return value;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(FaultLevel level) { return name_in(kLevels, level); }
std::string_view name_of(Restart restart) { return name_in(kRestarts, restart); }

std::optional<FaultLevel> fault_level_named(std::string_view name) {
  return named_in<FaultLevel>(kLevels, name);
}
std::optional<Restart> restart_named(std::string_view name) {
  return named_in<Restart>(kRestarts, name);
}

}  // namespace rehearsal::sim
