// `rl`: the reinforcement learning tutorial of PyTorch's RPC framework. One agent, N observers,
// references both ways, and calls inside calls: the agent calls an observer, which calls the agent.
#pragma once

#include "command_line/scenario.h"

namespace rehearsal::rl {

[[nodiscard]] Scenario scenario();

}  // namespace rehearsal::rl
