#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rehearsal::sim {

// The faults that can happen by themselves, in classes that a run can be told to leave out.
enum class FaultClass : uint8_t {
  delays,           // links that are slower than 0.1 ms, each seed in its own way
  scheduling,       // ready work that waits
  retransmissions,  // frames that TCP sends again, and all behind them late
  resets,           // connections that break
  corruption,       // flipped bits, which break connections
  refusals,         // attempts to connect that are refused
  hangs,            // attempts to connect that nobody answers
  unheard_losses,   // ends that do not hear that their connection broke
  bandwidth,        // large tensors that share what machines can send and receive
  buffers,          // senders' queues that are soon full
  clocks,           // clocks that differ, run apart and jump
  partitions,       // workers that cannot reach each other
  clogs,            // links that are slow or jammed for a time
  pauses,           // workers that stand still for a time
  slow_workers,     // workers whose every step takes a time
  short_lives,      // links that break behind a few messages, again and again
  crashes,
  madness,  // a worker that says what is not true
};
inline constexpr std::array kFaultClasses = {
    FaultClass::delays,      FaultClass::scheduling,     FaultClass::retransmissions,
    FaultClass::resets,      FaultClass::corruption,     FaultClass::refusals,
    FaultClass::hangs,       FaultClass::unheard_losses, FaultClass::bandwidth,
    FaultClass::buffers,     FaultClass::clocks,         FaultClass::partitions,
    FaultClass::clogs,       FaultClass::pauses,         FaultClass::slow_workers,
    FaultClass::short_lives, FaultClass::crashes,        FaultClass::madness,
};

[[nodiscard]] std::string_view name_of(FaultClass fault);
[[nodiscard]] std::optional<FaultClass> fault_class_named(std::string_view name);

}  // namespace rehearsal::sim
