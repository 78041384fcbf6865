#pragma once

#include <exception>
#include <typeinfo>

namespace rehearsal::sim {

// Learns of exceptions where they are thrown, before any stack unwinds: for who tells a run.
class ThrowListener {
 public:
  virtual ~ThrowListener() = default;
  // `thrown`: null if it is not derived from std::exception. `object`: what is thrown, as
  // std::current_exception knows it. It must not throw.
  virtual void on_throw(const std::type_info& type, const std::exception* thrown,
                        const void* object) = 0;
};

// While it lives, each exception that code on the calling thread throws reaches the listener; those
// of LibTorch and of the C++ library too. Nests: all listen, the inner one first. An exception
// that is thrown again (`throw;`, std::rethrow_exception) has been told before.
//
// It supplies the function that C++ throws by, __cxa_throw, which hands on to the C++ library's.
class ThrowWatch {
 public:
  explicit ThrowWatch(ThrowListener& listener);
  ~ThrowWatch();
  ThrowWatch(const ThrowWatch&) = delete;
  ThrowWatch& operator=(const ThrowWatch&) = delete;

 private:
  friend void tell_of_throw(const std::type_info& type, void* object);

  ThrowListener& listener_;
  const ThrowWatch* const before_;
};

}  // namespace rehearsal::sim
