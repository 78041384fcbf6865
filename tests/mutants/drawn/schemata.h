// A source with all small mistakes in it calls these: each mistake is made if its number was chosen
// when the process began. Force-included; never part of the product.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace rehearsal::schemata {

// Where a mistake would have shown: a byte for each number, in a file that all processes of a
// search share.
inline std::atomic<uint8_t>* shared_marks() {
  const char* const path = std::getenv("REHEARSAL_SCHEMA_SEEN");
  if (path == nullptr) return nullptr;
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) std::abort();
  const off_t size = lseek(file, 0, SEEK_END);
  void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<std::atomic<uint8_t>*>(memory);
}

inline uint32_t chosen_number() {
  const char* const text = std::getenv("REHEARSAL_SCHEMA");
  return text == nullptr ? 0 : static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
}

// Zero: none. Numbers begin with one.
inline const uint32_t chosen = chosen_number();
inline std::atomic<uint8_t>* const marks = shared_marks();

inline void mark(uint32_t number) {
  if (marks != nullptr && marks[number].load(std::memory_order_relaxed) == 0)
    marks[number].store(1, std::memory_order_relaxed);
}

// Of what differs wherever it is reached.
inline bool on(uint32_t number) {
  mark(number);
  return chosen == number;
}
// Of what differs only if `differs`.
inline bool on(uint32_t number, bool differs) {
  if (differs) mark(number);
  return chosen == number;
}

// Three mistakes: the condition is negated, holds always, holds never.
inline bool held(uint32_t number, bool condition) {
  if (on(number)) return !condition;
  if (on(number + 1, !condition)) return true;
  if (on(number + 2, condition)) return false;
  return condition;
}

// Two mistakes: the bound is one higher, one lower.
template <char kFirst, bool kOrEqual, class A, class B>
bool compared(uint32_t number, const A& a, const B& b) {
  const auto holds = [&a](const auto& bound) {
    if constexpr (kFirst == '<') return kOrEqual ? a <= bound : a < bound;
    else return kOrEqual ? a >= bound : a > bound;
  };
  const bool was = holds(b);
  const bool higher = holds(static_cast<B>(b + 1));
  const bool lower = holds(static_cast<B>(b - 1));
  if (on(number, higher != was)) return higher;
  if (on(number + 1, lower != was)) return lower;
  return was;
}

// Two mistakes: one more, one less.
template <class N>
N moved(uint32_t number, N constant) {
  if (on(number)) return static_cast<N>(constant + 1);
  if (on(number + 1)) return static_cast<N>(constant - 1);
  return constant;
}

template <class T>
T exchanged(uint32_t number, T right, T wrong) {
  return on(number) ? wrong : right;
}

}  // namespace rehearsal::schemata
