#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

// Which of LibTorch's operators peers may call by name.
namespace rehearsal {

// More tensor memory than this an operator may not take for a peer, unless the program says so.
inline constexpr uint64_t kOperatorMemoryMax = uint64_t{4} << 30;

// The pure operators (pure_operators.h), and those that a program adds. An ordinary value.
class AllowedOperators {
 public:
  // Adds one overload, "aten::add.out", or every overload of a name, "aten::add". Throws
  // std::invalid_argument if LibTorch has none of this name: load the library that registers it
  // first.
  void add(const std::string& name);

  // Whether an overload is among them; by its full name, which for the overload without a name ends
  // before the dot.
  [[nodiscard]] bool contains(std::string_view full_name) const;

 private:
  std::set<std::string, std::less<>> added_;
};

}  // namespace rehearsal
