// Your program in production: this process is one worker of it. The launcher's variables say which
// one and where the workers meet.
#include <rehearsal/real_net/run_worker.h>

#include <iostream>

#include "training.h"

int main() {
  const auto options = rehearsal::real::WorkerOptions::from_environment();
  const auto program = training::program(training::mended_trainer);
  const rehearsal::Status status = rehearsal::real::run_worker(options, program);
  if (status.ok()) return 0;
  std::cerr << "training_worker: " << to_string(status.error()) << std::endl;
  return 1;
}
