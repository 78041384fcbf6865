// Goal: no table of a node is forgotten when it is asked what it holds. Method: the members of its
// parts that are containers, read from their headers, against this list.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace rehearsal::tidy {
namespace {

// By header: each member, and what of NodeCensus counts it or, in brackets, why nothing has to.
using Members = std::map<std::string, std::string>;
using Tables = std::map<std::string, Members>;

// Of calls, references and passes.
const Tables& tables_of_work() {
  static const Tables listed = {
      {"core/calls/pending_calls.h",
       {{"pending_", "pending_calls"},
        {"spare_", "(memory that is used again)"},
        {"cancelled_makers_", "cancelled_makers"},
        {"owed_",
         "(no more than PeerLimits::owed_answers; a shutdown waits for no answer to them)"}}},
      {"core/calls/served_calls.h",
       {{"served_", "executions and waiting"},
        {"spare_", "(memory that is used again)"},
        {"queue_", "(part of served_)"},
        {"until_read_", "(part of served_)"},
        {"early_cancels_", "early_cancels"},
        {"given_up_", "given_up_calls"},
        {"objects_left_", "(of calls that are counted; filled by the end)"}}},
      {"core/calls/deadlines.h",
       {{"entries_", "timers and loose_timers"}, {"spare_", "(memory that is used again)"}}},
      {"core/calls/gatherings.h",
       {{"lives_", "(a number for each worker)"},
        {"next_", "(a number for each set of members)"},
        {"gatherings_", "gatherings"}}},
      {"core/calls/mailboxes.h",
       {{"groups_", "(a process group as such holds nothing; parcels in it: waiting)"},
        {"early_", "waiting"},
        {"ended_", "(no more than kEndedMax)"},
        {"ended_order_", "(as ended_)"},
        {"told_", "(no more than kToldMax for each worker)"}}},
      {"core/calls/store_tables.h",
       {{"stores_", "(limits for each worker; they stay for who has opened them; waits: waiting)"},
        {"shares_", "(two numbers for each worker)"}}},
      {"core/rref/rref_context.h",
       {{"owners_", "owners, owner_forks and owner_handles"},
        {"released_unconfirmed_", "(filled by the end of a shutdown)"},
        {"created_", "(what is known of each incarnation)"},
        {"to_come_", "awaited_values"},
        {"users_", "users and pending_users"},
        {"pending_children_", "pending_children"},
        {"values_left_", "(of references that are counted; filled by the end)"},
        {"due_", "(empty between two messages)"},
        {"next_counters_", "(a number for each owner)"}}},
      {"core/rref/published_names.h", {{"names_", "published"}, {"waiting_", "lookups"}}},
      {"core/autograd/contexts.h",
       {{"contexts_", "contexts"},
        {"ended_", "(no more than kEndedMax)"},
        {"ended_order_", "(as ended_)"},
        {"late_releases_", "late_releases"}}},
  };
  return listed;
}

// Of groups, links and the node itself.
const Tables& tables_of_links() {
  static const Tables listed = {
      {"core/groups/group.h", {{"waiting_", "awaited_members"}}},
      {"core/groups/static_group.h",
       {{"ready_", "(of workers)"},
        {"told_met_", "(of workers)"},
        {"misses_", "(of workers, by worker)"},
        {"lives_", "(a number for each worker)"},
        {"reports_", "(one for each worker)"},
        {"first_wave_", "(one for each worker)"},
        {"wave_answers_", "(of workers)"},
        {"lost_", "(of workers)"}}},
      {"core/groups/dynamic_group.h",
       {{"has_main_", "(a bit for each worker)"}, {"peers_", "(of workers)"}}},
      {"core/session/session.h",
       {{"peers_", "unacknowledged and shutdown_frames"},
        {"copied_to_self_", "unacknowledged"},
        {"filling_", "unacknowledged"},
        {"fenced_", "(what is known of each incarnation)"}}},
      {"core/session/device_loans.h",
       {{"lent_", "loans"},
        {"lives_", "(a number for each worker)"},
        {"waiting_", "(a shutdown waits for it)"}}},
      {"core/base/wait_table.h", {{"slots_", "parked"}, {"free_", "(places of slots_)"}}},
      {"core/node/node_parts.h",
       {{"leaks_", "(lines of text, no more than are told)"},
        {"threads_", "(a number for each name)"},
        {"least_lives_", "(a number for each worker)"},
        {"peer_timeouts_", "(a time for each worker)"}}},
  };
  return listed;
}

// The members of the header's classes that can hold any number of things.
std::vector<std::string> containers_in(const std::string& header) {
  static const std::regex member(
      R"(^  (?:const )?(?:std::(?:map|set|unordered_map|vector|deque|list)<)"
      R"(|Table |SpareNodes<|FairQueue<|Ring<).*?\b([a-z_]+_)(?:;|\{| =))");
  std::ifstream file(std::string(REHEARSAL_SOURCE_FOLDER) + "/" + header);
  EXPECT_TRUE(file.is_open()) << header;
  std::vector<std::string> found;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_search(line, match, member)) found.push_back(match[1]);
  }
  return found;
}

void expect_counted(const Tables& tables) {
  for (const auto& [header, members] : tables) {
    const std::vector<std::string> found = containers_in(header);
    EXPECT_EQ(found.size(), members.size()) << header;
    for (const std::string& name : found)
      EXPECT_TRUE(members.contains(name))
          << header << ": " << name
          << " is in no row of this test: count it in NodeCensus (core/node/node.h), and say in "
             "sim/oracles/no_leak.cc whether it may stay; or say here why not";
  }
}

TEST(NodeTables, EveryTableIsCountedOrIsSaidNotToBe) {
  expect_counted(tables_of_work());
  expect_counted(tables_of_links());
}

}  // namespace
}  // namespace rehearsal::tidy
