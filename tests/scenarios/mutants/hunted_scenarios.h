#pragma once

#include <vector>

#include "scenarios/grammar/grammar.h"
#include "scenarios/random_model/random_model.h"
#include "scenarios/random_training/random_training.h"
#include "scenarios/shared_state/shared_state.h"
#include "scenarios/storm/storm.h"

namespace rehearsal {

// Those that mutants are hunted by: see tests/mutants/flags.json.
inline std::vector<Scenario> hunted_scenarios() {
  return {storm_scenario(), shared_state::scenario(), random_model::scenario(), grammar_scenario(),
          random_training::scenario()};
}

}  // namespace rehearsal
