#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace rehearsal {

// A first-in-first-out queue that keeps its memory: nothing is allocated once it has grown.
template <class T>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] size_t size() const { return size_; }

  [[nodiscard]] T& front() { return at(0); }
  [[nodiscard]] const T& front() const {
    REHEARSAL_CHECK(size_ > 0);
    return places_[first_];
  }
  [[nodiscard]] T& back() { return at(size_ - 1); }

  // The i-th from the front.
  [[nodiscard]] T& at(size_t i) {
    REHEARSAL_CHECK(i < size_, i, size_);
    return places_[(first_ + i) & mask_];
  }

  void push(T&& value) {
    if (size_ == places_.size()) grow();
    places_[(first_ + size_) & mask_] = std::move(value);
    ++size_;
  }
  [[nodiscard]] T pop() {
    T value = std::move(front());
    drop_front();
    return value;
  }
  void pop_to(T& value) {
    value = std::move(front());
    drop_front();
  }
  [[nodiscard]] T pop_back() {
    T value = std::move(back());
    --size_;
    return value;
  }

 private:
  void drop_front() {
    first_ = (first_ + 1) & mask_;
    --size_;
  }
  void grow() {
    std::vector<T> larger(places_.empty() ? 8 : places_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(at(i));
    places_ = std::move(larger);
    mask_ = places_.size() - 1;
    first_ = 0;
  }

  std::vector<T> places_;  // its size is a power of two
  size_t mask_ = 0;
  size_t first_ = 0;
  size_t size_ = 0;
};

}  // namespace rehearsal
