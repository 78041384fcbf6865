// The cut that a run goes on from, by what the workers say that they have.
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_choice.h"

namespace rehearsal::testing {
namespace {

using Held = std::map<std::string, HeldCheckpoints>;

CheckpointCopy copy_of(CheckpointTag tag, std::vector<std::string> holders,
                       std::vector<std::string> pieces = {}) {
  return {.tag = tag, .holders = std::move(holders), .pieces = std::move(pieces)};
}

CheckpointChoice choice_among(const Held& held, const std::vector<std::string>& asked_first,
                              bool accept_loss = false) {
  return choose_checkpoint(
      "training", asked_first,
      [&held](const std::vector<std::string>& workers) {
        std::vector<HeldCheckpoints> answers;
        for (const std::string& worker : workers) answers.push_back(held.at(worker));
        return answers;
      },
      accept_loss);
}

std::string refusal_of(const Held& held, const std::vector<std::string>& asked_first,
                       ErrorKind kind = ErrorKind::storage) {
  try {
    static_cast<void>(choice_among(held, asked_first));
  } catch (const RpcError& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.error().text;
  }
  return "nothing was refused";
}

const std::vector<std::string> kBoth = {"ps", "trainer"};

TEST(CheckpointChoice, IsTheBeginningWhereNothingWasSaved) {
  const CheckpointChoice choice = choice_among({{"ps", {}}, {"trainer", {}}}, kBoth);
  EXPECT_EQ(choice.run, 1u);
  EXPECT_EQ(choice.from, CheckpointTag());
  EXPECT_TRUE(choice.directory.empty());
}

TEST(CheckpointChoice, ARunThatCannotHaveBegunIsRefused) {
  // Goal: a worker that makes numbers up neither begins runs again from zero nor uses them up.
  // Method: the last number that there is, said in each place; then as many as can be missed.
  const uint64_t last = std::numeric_limits<uint64_t>::max();
  const CheckpointTag tag{last, 4};
  for (const HeldCheckpoints& lie :
       {HeldCheckpoints{.run = last, .committed = {}, .copies = {}},
        HeldCheckpoints{.run = 1, .committed = {}, .copies = {copy_of(tag, {"trainer"})}}})
    for (const std::string liar : {"ps", "trainer"}) {
      Held held = {{"ps", {.run = 7}}, {"trainer", {.run = 7}}};
      held[liar] = lie;
      EXPECT_EQ(refusal_of(held, kBoth, ErrorKind::protocol),
                "checkpoint: worker '" + liar +
                    "' tells of run 18446744073709551615, and the others of 7 at most");
    }
  const uint64_t missed = uint64_t{1} << 32;
  EXPECT_EQ(choice_among({{"ps", {}}, {"trainer", {.run = missed}}}, kBoth).run, missed + 1);
}

TEST(CheckpointChoice, AStragglerThatSavedALaterStepGoesBack) {
  // Goal: the step is one that all have. Method: one of two workers died before it had written
  // step 6, and nobody had been told that step 4 was whole.
  const CheckpointTag four{1, 4};
  const CheckpointTag six{1, 6};
  const Held held = {
      {"ps", {.copies = {copy_of(four, kBoth, {"net.weight"}), copy_of(six, kBoth)}}},
      {"trainer", {.copies = {copy_of(four, kBoth, {"trainer:position"})}}}};
  const CheckpointChoice choice = choice_among(held, kBoth);
  EXPECT_EQ(choice.from, four);
  EXPECT_EQ(choice.run, 2u);
  ASSERT_EQ(choice.directory.size(), 2u);
  EXPECT_EQ(choice.directory[0].piece, "net.weight");
  EXPECT_EQ(choice.directory[0].holder, "ps");
  EXPECT_EQ(choice.directory[1].holder, "trainer");
}

TEST(CheckpointChoice, IsWholeAlsoIfNobodyWasToldSo) {
  const CheckpointTag four{1, 4};
  const CheckpointTag six{1, 6};
  const Held held = {
      {"ps", {.committed = four, .copies = {copy_of(four, kBoth), copy_of(six, kBoth)}}},
      {"trainer", {.copies = {copy_of(six, kBoth), copy_of(four, kBoth)}}}};
  EXPECT_EQ(choice_among(held, kBoth).from, six);
}

TEST(CheckpointChoice, ALaterRunsCutIsLaterWhateverItsStep) {
  // Goal: attempts are not mixed. Method: run 1 had got to step 8, run 2 began again at 4.
  const CheckpointTag first{1, 8};
  const CheckpointTag second{2, 6};
  const Held held = {{"ps", {.copies = {copy_of(first, kBoth), copy_of(second, kBoth)}}},
                     {"trainer", {.copies = {copy_of(first, kBoth), copy_of(second, kBoth)}}}};
  EXPECT_EQ(choice_among(held, kBoth).from, second);
  EXPECT_EQ(choice_among(held, kBoth).run, 3u);
}

TEST(CheckpointChoice, HoldersThatTakeNoPartAnyMoreAreAskedToo) {
  // Goal: a checkpoint loads onto other owners. Method: only the trainer is asked first.
  const CheckpointTag four{1, 4};
  const std::vector<std::string> holders = {"old", "trainer"};
  const Held held = {{"old", {.copies = {copy_of(four, holders, {"net.weight"})}}},
                     {"ps", {}},
                     {"trainer", {.copies = {copy_of(four, holders)}}}};
  const CheckpointChoice choice = choice_among(held, kBoth);
  EXPECT_EQ(choice.from, four);
  EXPECT_EQ(choice.holders, holders);
  EXPECT_EQ(choice.directory.at(0).holder, "old");
}

TEST(CheckpointChoice, ALostPartOfACompleteCutIsNotPassedOver) {
  // Goal: no silent return to an older step. Method: the trainer knows that step 6 was whole, and
  // the other has no file any more, or only those of an older step.
  const CheckpointTag four{1, 4};
  const CheckpointTag six{1, 6};
  const HeldCheckpoints trainer{.committed = six,
                                .copies = {copy_of(four, kBoth), copy_of(six, kBoth)}};
  const std::string lost =
      "checkpoint: step 6 of 'training' was saved by all, and 'ps' has lost its part: bring its "
      "files back, or go on without them with Options::accept_loss";
  EXPECT_EQ(refusal_of({{"ps", {}}, {"trainer", trainer}}, kBoth), lost);
  const HeldCheckpoints older{.committed = four, .copies = {copy_of(four, kBoth)}};
  EXPECT_EQ(refusal_of({{"ps", older}, {"trainer", trainer}}, kBoth), lost);
  EXPECT_EQ(choice_among({{"ps", older}, {"trainer", trainer}}, kBoth, true).from, four);
  EXPECT_EQ(choice_among({{"ps", {}}, {"trainer", trainer}}, kBoth, true).from, CheckpointTag());
}

TEST(CheckpointChoice, ARunIsNeverNumberedTwice) {
  // Goal: orders of an earlier run can be told from those of this one. Method: a run that saved
  // nothing is known to one worker only.
  const Held held = {{"ps", {.run = 7}}, {"trainer", {}}};
  EXPECT_EQ(choice_among(held, kBoth).run, 8u);
}

}  // namespace
}  // namespace rehearsal::testing
