#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace rehearsal {

// A value of a pickle, as far as its structure goes: nothing is made of it.
struct PickleValue {
  enum class Kind : uint8_t {
    nothing,
    truth,
    whole,
    floating,
    complex,
    text,
    device,
    tuple,
    list,
    dictionary,
    function,   // one that is called, or another name of LibTorch's: of a type of elements, say
    storage,    // the memory of tensors
    tensor,     // one that has its elements in a storage, and nothing else
    composite,  // a sparse or a quantized one
  };

  Kind kind = Kind::nothing;
  uint8_t depth = 0;      // how many containers are inside one another
  bool open = false;      // a list or a dictionary that has not got its elements yet
  bool internal = false;  // it is no value of the program's, or has such an element
  uint32_t count = 0;     // of bytes of a text, elements of a tuple, dimensions of a tensor;
                          // of a list and a dictionary: see kinds_in
  // The number itself (of a floating one its bits, of a complex one its hash); where the text, or
  // the elements, or a tensor's sizes begin; which function, which storage.
  int64_t number = 0;
  uint64_t visits = 1;  // the number of values in it; of one that is there twice: twice
  uint64_t bytes = 0;   // of the texts and tensors in it, counted in the same way
};

// The texts and the elements of tuples that values refer to.
struct PickleHeap {
  std::string_view pickle;
  std::vector<PickleValue> elements;

  [[nodiscard]] std::string_view text(const PickleValue& value) const {
    return pickle.substr(static_cast<size_t>(value.number), value.count);
  }
  [[nodiscard]] std::span<const PickleValue> elements_of(const PickleValue& tuple) const {
    return std::span(elements).subspan(static_cast<size_t>(tuple.number), tuple.count);
  }
};

// A set of kinds, as lists count those of their elements, and dictionaries those of their keys and,
// in the upper half, of their values.
constexpr uint32_t as_set(PickleValue::Kind kind) { return uint32_t{1} << static_cast<int>(kind); }
inline constexpr int kValuesShift = 16;
static_assert(static_cast<int>(PickleValue::Kind::composite) < kValuesShift);
[[nodiscard]] constexpr bool has_only(uint32_t set, PickleValue::Kind kind) {
  return (set & ~as_set(kind)) == 0;
}

}  // namespace rehearsal
