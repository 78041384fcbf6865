#include "sim/world/judged_values.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <stdexcept>

namespace rehearsal::sim {

std::vector<Values::Place> Values::places_of(std::string_view worker) const {
  if (worker.empty()) return places_;
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [worker](const Place& place) { return place.worker == worker; });
  if (found != places_.end()) return {*found};
  std::string known;
  for (const Place& place : places_) known += " " + std::string(place.worker);
  throw std::invalid_argument("there is no worker named '" + std::string(worker) +
                              "'; there are:" + known);
}

std::optional<std::string> contradiction(const NamedInvariant& invariant, const Values& values) {
  const at::NoGradGuard only_looks;
  try {
    return invariant.broken(values);
  } catch (const std::exception& thrown) {
    return std::string("looking at it threw: ") + thrown.what();
  }
}

}  // namespace rehearsal::sim
