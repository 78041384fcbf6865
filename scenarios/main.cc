#include "command_line/command_line.h"
#include "scenarios/barcode/barcode.h"
#include "scenarios/quickstart/quickstart.h"
#include "scenarios/rl/rl.h"
#include "scenarios/rnn/rnn.h"
#include "scenarios/rref_fork/rref_fork.h"
#include "scenarios/storm/storm.h"

int main(int argc, char** argv) {
  using namespace rehearsal;
  return rehearsal::main(argc, argv,
                         {quickstart::scenario(), rnn::scenario(), rl::scenario(),
                          barcode::scenario(), storm_scenario(), rref_fork_scenario()});
}
