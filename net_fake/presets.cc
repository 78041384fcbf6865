#include "net_fake/presets.h"

#include <chrono>

#include "core/base/check.h"

namespace rehearsal::net_fake {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kMegabyte = 1'000'000;

}  // namespace

std::string_view name_of(Preset preset) {
  switch (preset) {
    case Preset::local:
      return "local";
    case Preset::rack:
      return "rack";
    case Preset::wan:
      return "wan";
    case Preset::hostile:
      return "hostile";
  }
  REHEARSAL_CHECK(false, static_cast<int>(preset));
  return {};
}

std::optional<Preset> preset_named(std::string_view name) {
  for (const Preset preset : kPresets)
    if (name == name_of(preset)) return preset;
  return std::nullopt;
}

LinkModel link_of(Preset preset) {
  switch (preset) {
    case Preset::local:
      return {.delay = Delay::uniform(microseconds(5), microseconds(20)),
              .connect = Delay::uniform(microseconds(20), microseconds(100))};
    case Preset::rack:
      return {.delay = Delay::uniform(microseconds(50), microseconds(200)),
              .connect = Delay::uniform(microseconds(100), microseconds(500)),
              .bytes_per_second = 1250 * kMegabyte};
    case Preset::wan:
      // An exponential tail ends at 22 means.
      return {.delay = Delay::exponential(milliseconds(30), milliseconds(70) / 22),
              .connect = Delay::uniform(milliseconds(60), milliseconds(200)),
              .retransmit_millionths = 500,
              .bytes_per_second = 125 * kMegabyte};
    case Preset::hostile:
      return {.delay = Delay::bimodal(
                  microseconds(100), milliseconds(2),
                  {.min = milliseconds(2), .max = milliseconds(100), .millionths = 50'000}),
              .connect = Delay::uniform(microseconds(100), milliseconds(250)),
              .retransmit_millionths = 20'000,
              .bytes_per_second = 20 * kMegabyte};
  }
  REHEARSAL_CHECK(false, static_cast<int>(preset));
  return {};
}

LinkModel bounded(LinkModel link, Duration longest) {
  link.delay = link.delay.bounded(longest);
  link.connect = link.connect.bounded(longest);
  return link;
}

}  // namespace rehearsal::net_fake
