#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// A reader of bytes that come from outside, as libFuzzer drives it.
namespace rehearsal::fuzz {

using Bytes = std::span<const uint8_t>;

struct Target {
  std::string name;
  std::string about;                // in one line
  std::function<void(Bytes)> read;  // ends the process if a promise is broken
  std::function<std::vector<std::string>()> first_inputs;  // good ones, to begin with
};

// In the order of the bytes' way: from the network to values, then files and words.
[[nodiscard]] const std::vector<Target>& targets();

[[nodiscard]] std::vector<Target> network_targets();
[[nodiscard]] std::vector<Target> value_targets();
[[nodiscard]] std::vector<Target> file_targets();
[[nodiscard]] std::vector<Target> word_targets();
[[nodiscard]] Target node_target();

// Ends the process, for libFuzzer to keep the input, unless it holds.
void must(bool holds, std::string_view promise);

// Takes an input apart. Numbers and texts beyond its end are zero and empty.
class Input {
 public:
  explicit Input(Bytes bytes) : left_(bytes) {}

  [[nodiscard]] uint8_t byte() { return static_cast<uint8_t>(number(1)); }
  [[nodiscard]] uint64_t number(size_t bytes = 8);
  [[nodiscard]] std::string text(size_t bytes);
  [[nodiscard]] std::string rest() { return text(left_.size()); }
  [[nodiscard]] size_t left() const { return left_.size(); }

 private:
  Bytes left_;
};

[[nodiscard]] std::span<const std::byte> as_bytes(std::string_view text);

// A file without a name on any disk, whose whole contents are set for each input.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void set(std::string_view contents);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const int descriptor_;
  const std::string path_;
};

}  // namespace rehearsal::fuzz
