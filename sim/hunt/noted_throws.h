#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <exception>
#include <string>

#include "core/base/error.h"
#include "sim/places/source_places.h"
#include "sim/explain/throw_watch.h"

namespace rehearsal::sim {

// The object that was thrown, by which a throw is known (ThrowListener::on_throw).
[[nodiscard]] const void* object_of(const std::exception_ptr& exception);

// Where the exceptions of a run were thrown. While it lives, each throw on the calling thread is
// noted with its stack. Changes nothing in the run.
class NotedThrows final : private ThrowListener {
 public:
  NotedThrows() : watch_(*this) {}

  // The exception that is being handled has become this error.
  void became(const Error& error);

  // Where the exception that is being handled was thrown, as SourcePlaces writes stacks; empty if
  // that is not known.
  [[nodiscard]] std::string stack() const;

  // Lines that say where the exception was thrown that has become such an error, innermost function
  // of the program first: "thrown in refuse at FILE:12"; empty if that is not known.
  [[nodiscard]] std::string place_of(const Error& error) const;

 private:
  void on_throw(const std::type_info& type, const std::exception* thrown,
                const void* object) override;

  struct Throw {
    const void* object = nullptr;
    std::string stack;
  };
  [[nodiscard]] const Throw* handled() const;
  struct Place {
    std::string text;  // of the error
    std::string lines;
  };
  static constexpr size_t kPlacesMax = 64;

  SourcePlaces source_;
  std::array<Throw, 16> last_;  // more are seldom on their way at once
  size_t next_ = 0;
  std::deque<Place> places_;  // the latest last
  const ThrowWatch watch_;
};

}  // namespace rehearsal::sim
