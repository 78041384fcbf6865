#pragma once

#include <cstdint>
#include <vector>

#include "sim/explore/guide.h"

namespace rehearsal::sim::explore {

// Goes through all schedules of a program that differ in the order of dependent transitions, one
// run after the other: source sets and sleep sets (Abdulla, Aronsson, Jonsson, Sagonas, POPL 2014)
// found from the races of each run. A transition of which another has taken away the possibility
// (a frame that is lost with its link) counts as a race with it. Choices within a step are all
// tried.
//
//   Dpor dpor;
//   while (dpor.begin_run()) { … run the program, guided by dpor … ; dpor.end_run(); }
//
// The program must be deterministic: the same picks and choices make the same candidates. It is not
// kept: each run repeats its prefix.
class Dpor final : public Guide {
 public:
  // False once all have been run.
  [[nodiscard]] bool begin_run();
  void end_run();

  size_t pick(const std::vector<Candidate>& enabled) override;
  uint64_t choose(uint64_t n) override;
  void received_from(size_t step) override;

  // Runs to the end; those that were stopped because every continuation was in other runs; steps of
  // all runs.
  [[nodiscard]] uint64_t schedules() const { return schedules_; }
  [[nodiscard]] uint64_t stopped() const { return stopped_; }
  [[nodiscard]] uint64_t steps() const { return steps_; }

  // The share, run so far, of all that is known by now to be needed: more may become known.
  [[nodiscard]] double progress() const;

  // The picks of the present run, then of the choices within each step.
  struct Pick {
    size_t place = 0;  // among the candidates
    std::vector<uint64_t> choices;
  };
  [[nodiscard]] std::vector<Pick> schedule() const;

 private:
  struct Choice {
    uint64_t value = 0;
    uint64_t of = 0;
  };
  // A state of the present run, and what was or will be picked there.
  struct State {
    std::vector<Candidate> enabled;
    std::vector<bool> asleep;     // by candidate: its continuations have been run elsewhere
    std::vector<bool> backtrack;  // by candidate: it is to be picked here some time
    size_t picked = 0;
    std::vector<Choice> choices;   // within the picked step
    std::vector<size_t> received;  // steps whose frames it received
    std::vector<bool> before;      // by step: happens before this one
  };

  void enter(const std::vector<Candidate>& enabled);
  void note_taken_away(State& before, const std::vector<Candidate>& enabled);
  void find_order(size_t step);
  void find_races(size_t step);
  [[nodiscard]] bool reversible(size_t earlier, size_t later) const;
  void reverse(size_t earlier, size_t later);
  void go_on();
  [[nodiscard]] const Transition& transition(size_t step) const {
    const State& state = states_[step];
    return state.enabled[state.picked].transition;
  }

  std::vector<State> states_;
  size_t step_ = 0;      // of the present run, from 1 once it has begun
  size_t choice_ = 0;    // of the present step
  size_t analysed_ = 0;  // steps whose races are known
  bool done_ = false;
  bool stopping_ = false;
  uint64_t schedules_ = 0;
  uint64_t stopped_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace rehearsal::sim::explore
