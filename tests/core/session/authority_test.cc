#include "core/session/authority.h"

#include <gtest/gtest.h>

#include <string>

namespace rehearsal {
namespace {

TEST(Authority, NoOperatorHasALongerNameThanCanBe) {
  // Goal: honest callers refuse such a name themselves, so that its sender breaks the protocol, and
  // nothing is made of it. Method: the longest that can be, and one letter more.
  SessionOptions options;
  options.names = {"a", "b"};
  const Pair pair{.from = WorkerId{1},
                  .sender = Incarnation{200},
                  .self = WorkerId{0},
                  .receiver = Incarnation{100}};
  Call call{.id = CallId{{Incarnation{200}, {1, 2}, 3}}, .kind = CallKind::operator_};
  call.name = std::string(kOperatorNameMax, 'n');
  EXPECT_FALSE(violation_of(Message{call}, pair, options));
  call.name += 'n';
  const std::optional<Violation> violation = violation_of(Message{call}, pair, options);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->field, "Call.name");
}

TEST(Authority, NoPassTakesMoreBackThanAStarterDoes) {
  // Goal: no name of a pass grows until a message that has it exceeds a frame. Method: the most
  // that can be, and one more, in a message that begins a pass.
  SessionOptions options;
  options.names = {"a", "b"};
  const Pair pair{.from = WorkerId{1},
                  .sender = Incarnation{200},
                  .self = WorkerId{0},
                  .receiver = Incarnation{100}};
  PassFinish finish;
  finish.pass.id.epoch = 2;
  finish.pass.settled = 2;
  finish.pass.taken_back.assign(kTakenBackMax, 1);
  EXPECT_FALSE(violation_of(Message{finish}, pair, options));
  finish.pass.taken_back.push_back(1);
  const std::optional<Violation> violation = violation_of(Message{finish}, pair, options);
  ASSERT_TRUE(violation);
  EXPECT_EQ(violation->field, "PassFinish.pass");
}

}  // namespace
}  // namespace rehearsal
