#include "core/checkpoint/pickle_scan.h"

#include <c10/util/Exception.h>

#include <cstdint>
#include <cstring>
#include <optional>

namespace rehearsal {
namespace {

// The bytes behind an opcode.
struct Argument {
  enum class Kind : uint8_t { fixed, counted, lines, remembered };
  Kind kind = Kind::fixed;
  size_t bytes = 0;  // of a fixed one, of the count, of the number; or how many lines
};

std::optional<Argument> argument_of(unsigned char opcode) {
  using enum Argument::Kind;
  constexpr std::string_view kAlone = "(.012NQRabde}]lostu)";
  if (kAlone.find(static_cast<char>(opcode)) != std::string_view::npos) return Argument{};
  switch (opcode) {
    case 0x81:  // NEWOBJ
    case 0x85:  // TUPLE1, TUPLE2, TUPLE3
    case 0x86:
    case 0x87:
    case 0x88:  // NEWTRUE, NEWFALSE
    case 0x89:
      return Argument{};
    case 'K':   // BININT1
    case 'h':   // BINGET
    case 0x80:  // PROTO
      return Argument{fixed, 1};
    case 'M':  // BININT2
      return Argument{fixed, 2};
    case 'J':  // BININT
    case 'j':  // LONG_BINGET
      return Argument{fixed, 4};
    case 'G':  // BINFLOAT
      return Argument{fixed, 8};
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
    case 0x8a:  // LONG1
      return Argument{counted, 1};
    case 'T':   // BINSTRING
    case 'X':   // BINUNICODE
    case 'B':   // BINBYTES
    case 0x8b:  // LONG4
      return Argument{counted, 4};
    case 'q':  // BINPUT
      return Argument{remembered, 1};
    case 'r':  // LONG_BINPUT
      return Argument{remembered, 4};
    case 'c':  // GLOBAL
      return Argument{lines, 2};
    default:
      return std::nullopt;
  }
}

class Scan {
 public:
  explicit Scan(std::string_view pickle) : left_(pickle) {}

  // False at the end.
  bool step() {
    TORCH_CHECK(!left_.empty(), "a pickle without an end");
    const auto opcode = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    const std::optional<Argument> argument = argument_of(opcode);
    TORCH_CHECK(argument, "opcode ", static_cast<int>(opcode), " of a pickle is not known here");
    skip(*argument);
    ++opcodes_;
    return opcode != '.';
  }

 private:
  void take(size_t bytes) {
    TORCH_CHECK(bytes <= left_.size(), "a pickle is cut off");
    left_.remove_prefix(bytes);
  }

  uint64_t number(size_t bytes) {
    uint64_t number = 0;
    if (bytes <= left_.size()) std::memcpy(&number, left_.data(), bytes);
    take(bytes);
    return number;
  }

  void skip(const Argument& argument) {
    switch (argument.kind) {
      case Argument::Kind::fixed:
        return take(argument.bytes);
      case Argument::Kind::counted:
        return take(number(argument.bytes));
      case Argument::Kind::remembered:
        TORCH_CHECK(number(argument.bytes) <= opcodes_, "a pickle remembers what it has not");
        return;
      case Argument::Kind::lines:
        for (size_t line = 0; line < argument.bytes; ++line) {
          const size_t end = left_.find('\n');
          TORCH_CHECK(end != std::string_view::npos, "a pickle is cut off");
          left_.remove_prefix(end + 1);
        }
    }
  }

  std::string_view left_;
  uint64_t opcodes_ = 0;
};

}  // namespace

void scan_pickle(std::string_view pickle) {
  Scan scan(pickle);
  while (scan.step()) {
  }
}

}  // namespace rehearsal
