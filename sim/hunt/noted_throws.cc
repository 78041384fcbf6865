#include "sim/hunt/noted_throws.h"

#include <cstring>
#include <filesystem>
#include <ranges>
#include <sstream>
#include <utility>

namespace rehearsal::sim {
namespace {

constexpr size_t kFunctionsToldMax = 4;

// "thrown in refuse at program.cc:12", then "called from …"; files below this folder without it.
std::string lines_of(const std::string& stack) {
  std::error_code unknown;
  const std::string here = std::filesystem::current_path(unknown).string() + "/";
  std::istringstream places(stack);
  std::string lines;
  std::string place;
  for (size_t told = 0; told < kFunctionsToldMax && std::getline(places, place); ++told) {
    if (const size_t file = place.rfind(' '); file != std::string::npos) {
      const size_t prefix = place.compare(file + 1, here.size(), here) == 0 ? here.size() : 0;
      place.replace(file, 1 + prefix, " at ");
    }
    lines += (told == 0 ? "thrown in " : "called from ") + place + "\n";
  }
  return lines;
}

}  // namespace

const void* object_of(const std::exception_ptr& exception) {
  const void* object = nullptr;
  static_assert(sizeof exception == sizeof object);
  std::memcpy(&object, &exception, sizeof object);
  return object;
}

void NotedThrows::on_throw(const std::type_info&, const std::exception*, const void* object) {
  last_[next_++ % last_.size()] = {object, source_.calling_stack()};
}

const NotedThrows::Throw* NotedThrows::handled() const {
  const void* const object = object_of(std::current_exception());
  for (size_t i = next_; i > 0 && i + last_.size() > next_; --i)
    if (const Throw& latest = last_[(i - 1) % last_.size()]; latest.object == object)
      return &latest;
  return nullptr;
}

std::string NotedThrows::stack() const {
  const Throw* const latest = handled();
  return latest == nullptr ? std::string() : latest->stack;
}

void NotedThrows::became(const Error& error) {
  const Throw* const latest = handled();
  // An error on its way through other workers is known by where it was thrown first.
  if (latest == nullptr || !place_of(error).empty()) return;
  places_.push_back({error.text, lines_of(latest->stack)});
  if (places_.size() > kPlacesMax) places_.pop_front();
}

std::string NotedThrows::place_of(const Error& error) const {
  for (const Place& place : std::views::reverse(places_))
    if (place.text == error.text) return place.lines;
  return {};
}

}  // namespace rehearsal::sim
