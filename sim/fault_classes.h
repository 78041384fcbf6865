#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearsal::sim {

// What can go wrong by itself, in classes that a run can be told to leave out.
enum class FaultClass : uint8_t {
  delays,           // links that are slower than 0.1 ms, each seed in its own way
  scheduling,       // ready work that waits
  retransmissions,  // frames that TCP sends again, and all behind them late
  resets,           // connections that break
  refusals,         // attempts to connect that are refused
  unheard_losses,   // ends that do not hear that their connection broke
  partitions,       // workers that cannot reach each other
  crashes,
};
inline constexpr std::array kFaultClasses = {
    FaultClass::delays,     FaultClass::scheduling, FaultClass::retransmissions,
    FaultClass::resets,     FaultClass::refusals,   FaultClass::unheard_losses,
    FaultClass::partitions, FaultClass::crashes,
};

[[nodiscard]] std::string_view name_of(FaultClass fault);
[[nodiscard]] std::optional<FaultClass> fault_class_named(std::string_view name);

}  // namespace rehearsal::sim
