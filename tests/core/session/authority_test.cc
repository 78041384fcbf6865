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

}  // namespace
}  // namespace rehearsal
