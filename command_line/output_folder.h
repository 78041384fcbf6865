#pragma once

#include <string>

namespace rehearsal::command_line {

// Makes the folder that a flag names, with those above it. Where it cannot be written that is wrong
// use (throws WrongUse), before anything runs. Nothing for an empty name.
void make_folder(const std::string& flag, const std::string& folder);

}  // namespace rehearsal::command_line
