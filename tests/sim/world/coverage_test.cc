#include "sim/world/coverage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/wire/message.h"

namespace rehearsal::sim {
namespace {

constexpr WorkerId kHere{0};
constexpr WorkerId kThere{1};

uint32_t type_of(const std::string& message) {
  for (uint32_t type = 1; type < std::variant_size_v<MessageContent>; ++type)
    if (message_name(type) == message) return type;
  ADD_FAILURE() << message;
  return 0;
}

// By a frame's number on its way.
Event sent(WorkerId from, WorkerId to, uint64_t number, const std::string& message,
           EventKind kind = EventKind::frame_sent) {
  return {
      .kind = kind, .worker = from, .peer = to, .message_type = type_of(message), .number = number};
}
Event arrived(WorkerId to, WorkerId from, uint64_t number, const std::string& message) {
  return sent(to, from, number, message, EventKind::frame);
}
Event of_peer(EventKind kind, WorkerId worker, WorkerId peer) {
  return {.kind = kind, .worker = worker, .peer = peer};
}

size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  EXPECT_NE(found, names.end()) << name;
  return static_cast<size_t>(found - names.begin());
}

bool has(const Coverage& coverage, const std::string& table, const std::string& row,
         const std::string& column) {
  for (const CoverageTable& made : coverage_tables()) {
    if (made.name != table) continue;
    const uint32_t number = made.number(place_of(made.rows, row), place_of(made.columns, column));
    const std::vector<uint32_t> seen = coverage.seen();
    return std::ranges::find(seen, number) != seen.end();
  }
  ADD_FAILURE() << table;
  return false;
}

TEST(Coverage, NumbersOfNoTwoPairsAreAlike) {
  std::set<uint32_t> numbers;
  size_t pairs = 0;
  for (const CoverageTable& table : coverage_tables())
    for (size_t row = 0; row < table.rows.size(); ++row)
      for (size_t column = 0; column < table.columns.size(); ++column, ++pairs)
        numbers.insert(table.number(row, column));
  EXPECT_EQ(numbers.size(), pairs);
  EXPECT_GT(pairs, 1000u);
}

TEST(Coverage, CountsAMessageWithWhatItsReceiverHeldBeforeIt) {
  Coverage coverage;
  coverage.on_event(arrived(kHere, kThere, 1, "Call"));
  EXPECT_TRUE(has(coverage, "holding", "Call", "nothing"));
  coverage.after_step(kHere, {.pending_calls = 3, .owners = 1});
  coverage.on_event(arrived(kHere, kThere, 2, "Response"));
  EXPECT_TRUE(has(coverage, "holding", "Response", "calls it waits for"));
  EXPECT_TRUE(has(coverage, "holding", "Response", "owners"));
  EXPECT_FALSE(has(coverage, "holding", "Response", "nothing"));
  EXPECT_FALSE(has(coverage, "holding", "Response", "users"));
  // Each worker holds its own.
  coverage.on_event(arrived(kThere, kHere, 1, "Response"));
  EXPECT_TRUE(has(coverage, "holding", "Response", "nothing"));
}

TEST(Coverage, CountsAMessageWithTheOneThatTheSameWorkerHandledBefore) {
  Coverage coverage;
  coverage.on_event(arrived(kHere, kThere, 1, "Call"));
  coverage.on_event(arrived(kThere, kHere, 1, "Cancel"));
  EXPECT_FALSE(has(coverage, "order", "Call", "Cancel"));
  coverage.on_event(arrived(kHere, kThere, 2, "Response"));
  EXPECT_TRUE(has(coverage, "order", "Call", "Response"));
  EXPECT_FALSE(has(coverage, "order", "Response", "Call"));
  coverage.on_crash(kHere);
  coverage.on_event(arrived(kHere, kThere, 1, "Cancel"));
  EXPECT_FALSE(has(coverage, "order", "Response", "Cancel"));
}

TEST(Coverage, CountsWhatBrokeUnderAMessageThatWasUnderWay) {
  Coverage coverage;
  coverage.on_event(sent(kHere, kThere, 1, "Call"));
  coverage.on_event(sent(kHere, kThere, 2, "Cancel"));
  coverage.on_event(arrived(kThere, kHere, 1, "Call"));
  coverage.on_event(of_peer(EventKind::peer_lost, kThere, kHere));
  EXPECT_TRUE(has(coverage, "fault", "Cancel", "link lost"));
  EXPECT_FALSE(has(coverage, "fault", "Call", "link lost"));
  coverage.on_event(sent(kHere, kThere, 2, "Cancel", EventKind::frame_resent));
  EXPECT_TRUE(has(coverage, "fault", "Cancel", "sent again"));
  coverage.on_event(of_peer(EventKind::peer_fenced, kHere, kThere));
  EXPECT_TRUE(has(coverage, "fault", "Cancel", "one gave the other up"));
}

TEST(Coverage, TellsACrashOfTheSenderFromOneOfTheReceiver) {
  Coverage coverage;
  coverage.on_event(sent(kHere, kThere, 1, "Call"));
  coverage.on_event(sent(kThere, kHere, 1, "Response"));
  coverage.on_crash(kThere);
  EXPECT_TRUE(has(coverage, "fault", "Call", "receiver crashed"));
  EXPECT_TRUE(has(coverage, "fault", "Response", "sender crashed"));
  EXPECT_FALSE(has(coverage, "fault", "Call", "sender crashed"));
  // The numbers of its next life begin anew.
  coverage.on_event(of_peer(EventKind::peer_lost, kHere, kThere));
  EXPECT_FALSE(has(coverage, "fault", "Call", "link lost"));
}

}  // namespace
}  // namespace rehearsal::sim
