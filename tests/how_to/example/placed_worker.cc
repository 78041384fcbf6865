// One worker of the program over TCP, whose devices are simulated.
#include <rehearsal/real_net/run_worker.h>
#include <rehearsal/sim/simulated_devices.h>

#include <exception>
#include <iostream>

#include "placed.h"

int main() try {
  rehearsal::sim::SimulatedDevices devices({.count = 2, .for_all_threads = true});
  auto options = rehearsal::real::WorkerOptions::from_environment();
  options.node.devices = devices.here();
  const auto program = placed::program(&placed::Table::rows);
  const rehearsal::Status status = rehearsal::real::run_worker(options, program);
  if (!status.ok()) throw std::runtime_error(to_string(status.error()));
  devices.check();
} catch (const std::exception& error) {
  std::cerr << "placed_worker: " << error.what() << std::endl;
  return 1;
}
