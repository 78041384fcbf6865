#pragma once

#include "sim/explain/chronicle.h"
#include "tests/sim/explain/entries.h"

namespace rehearsal::sim {

// A pass that a trainer starts through a call to ps and its answer; it goes on up to the commit.
inline Chronicle run_with_pass(bool fast) {
  constexpr uint32_t kPs = 0, kTrainer = 1;
  HandMade made({"ps", "trainer", "idle"});
  AutogradNote call{.context = "0000000c#1"};
  AutogradNote answer = call;
  call.carried = "0000000a#5";
  answer.carried = "0000000b#7";
  AutogradNote pass{.context = "0000000c#1", .epoch = 2, .starter = kTrainer, .fast = fast};
  AutogradNote about_call = pass;
  about_call.about = {call.carried};
  AutogradNote about_answer = pass;
  about_answer.about = {answer.carried};
  AutogradNote check = pass;
  check.wave = "check";
  const auto begin_or_end = [&](EventKind kind, uint32_t worker, const char* text) {
    made.add({.event = kind,
              .worker = worker,
              .peer = kTrainer,
              .id = pass.context,
              .number = pass.epoch,
              .text = text,
              .autograd = pass});
  };
  made.send_noted(kTrainer, kPs, 1, kCall, call).take(kPs, kTrainer, 1);               // 0, 1
  made.send_noted(kPs, kTrainer, 1, kResponse, answer).take(kTrainer, kPs, 1);         // 2, 3
  begin_or_end(EventKind::pass_started, kTrainer, "");                                 // 4
  made.send_noted(kTrainer, kPs, 2, kMarks, about_answer).take(kPs, kTrainer, 2);      // 5, 6
  begin_or_end(EventKind::pass_started, kPs, "");                                      // 7
  made.send_noted(kPs, kTrainer, 2, kMarks, about_call);                               // 8
  made.take(kTrainer, kPs, 2).send_noted(kTrainer, kPs, 3, kMarksAnswered, pass);      // 9, 10
  made.take(kPs, kTrainer, 3).send_noted(kPs, kTrainer, 3, kMarksAnswered, pass);      // 11, 12
  made.take(kTrainer, kPs, 3);                                                         // 13
  made.send_noted(kTrainer, kPs, 4, kGradients, about_answer).take(kPs, kTrainer, 4);  // 14, 15
  made.send_noted(kPs, kTrainer, 4, kGradients, about_call).take(kTrainer, kPs, 4);    // 16, 17
  made.send_noted(kTrainer, kPs, 5, kGradientsAnswered, about_call);                   // 18
  made.take(kPs, kTrainer, 5).send_noted(kPs, kTrainer, 5, kGradientsAnswered, about_answer);  // 20
  made.take(kTrainer, kPs, 5).send_noted(kTrainer, kPs, 6, kPassFinish, check);   // 21, 22
  made.take(kPs, kTrainer, 6).send_noted(kPs, kTrainer, 6, kPassFinished, pass);  // 23, 24
  made.take(kTrainer, kPs, 6);                                                    // 25
  begin_or_end(EventKind::pass_ended, kPs, "no luck");                            // 26
  begin_or_end(EventKind::pass_ended, kTrainer, "");                              // 27
  return chronicle_of(made.history);
}

}  // namespace rehearsal::sim
