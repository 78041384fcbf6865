#include "command_line/command_line.h"
#include "scenarios/all_scenarios.h"

int main(int argc, char** argv) { return rehearsal::main(argc, argv, rehearsal::all_scenarios()); }
