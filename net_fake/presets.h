#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/time.h"
#include "net_fake/link_model.h"

namespace rehearsal::net_fake {

// Networks by name: how every link of a cluster behaves while nothing is broken.
enum class Preset : uint8_t {
  local,    // processes of one machine: 5 to 20 µs
  rack,     // machines of one rack: 50 to 200 µs, 10 Gbit/s
  wan,      // far apart: 30 to 100 ms, 1 Gbit/s, now and then a lost packet
  hostile,  // mostly quick, often late by up to 100 ms, one frame in fifty is sent again, 160
            // Mbit/s
};
inline constexpr std::array kPresets = {Preset::local, Preset::rack, Preset::wan, Preset::hostile};

[[nodiscard]] std::string_view name_of(Preset preset);
[[nodiscard]] std::optional<Preset> preset_named(std::string_view name);

[[nodiscard]] LinkModel link_of(Preset preset);

// The same link, with no delay beyond `longest`.
[[nodiscard]] LinkModel bounded(LinkModel link, Duration longest);

}  // namespace rehearsal::net_fake
