// Two ways to start the same child process, which differ in everything that must not matter to a
// simulated run.
#pragma once

#include <string>

#include "command_line/child_process.h"

namespace rehearsal::command_line {

// Beside kChildCommand, asks a child for ScatteredMemory.
inline constexpr const char* kScatterWord = "scattered";

struct Surroundings {
  ChildSetup first;         // close to what the person's own shell would start
  ChildSetup second;        // everything else: addresses, memory, environment, folder, core
  std::string differences;  // what the second has, for people: "locale C.UTF-8, core 1, …"
};

// Both are of this moment: cores and locales are those that this process may use.
[[nodiscard]] Surroundings make_surroundings();

}  // namespace rehearsal::command_line
