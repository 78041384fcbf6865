#include "observe/log/log.h"

#include <gtest/gtest.h>

#include <regex>
#include <sstream>

namespace rehearsal::observe {
namespace {

// The lines without their times, which are checked for their form.
std::string without_times(const std::string& text) {
  static const std::regex time(R"((^|\n)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z )");
  return std::regex_replace(text, time, "$1");
}

TEST(Log, ALineHasTimeLevelWorkerAndFields) {
  // Goal: the format, byte for byte. Method: plain and strange values.
  std::ostringstream out;
  Log log(LogLevel::info, "ps", out);
  log.write(LogLevel::warn, "link_lost", {{"peer", "trainer"}, {"why", "reset by \"peer\"\n\x01"}});
  log.write(LogLevel::info, "metrics", {{"url", "http://127.0.0.1:80/metrics"}, {"empty", ""}});
  log.write(LogLevel::debug, "mark", {});
  EXPECT_EQ(without_times(out.str()),
            "level=warning worker=ps event=link_lost peer=trainer "
            "why=\"reset by \\\"peer\\\"\\n\\x01\"\n"
            "level=info worker=ps event=metrics url=http://127.0.0.1:80/metrics empty=\"\"\n");
}

TEST(Log, ItsLevelIsReadFromText) {
  // Goal: the words of the option. Method: all of them, and others.
  EXPECT_EQ(parse_log_level("debug"), LogLevel::debug);
  EXPECT_EQ(parse_log_level("info"), LogLevel::info);
  EXPECT_EQ(parse_log_level("warn"), LogLevel::warn);
  EXPECT_EQ(parse_log_level("error"), LogLevel::error);
  EXPECT_EQ(parse_log_level("off"), LogLevel::off);
  for (const char* text : {"", "WARN", "warning", "2"})
    EXPECT_FALSE(parse_log_level(text).has_value()) << text;
}

TEST(LogTrace, EventsOfANodeAreLines) {
  // Goal: what each level tells. Method: one event of each kind that is told, and one that is not.
  const auto told = [](LogLevel level) {
    std::ostringstream out;
    Log log(level, "ps", out);
    LogTrace trace(log, {"ps", "trainer"});
    const auto see = [&](EventKind kind, std::string_view text, WorkerId peer = {1}) {
      trace.on_event({.kind = kind, .worker = {0}, .peer = peer, .number = 1, .text = text});
    };
    see(EventKind::peer_up, "");
    see(EventKind::peer_lost, "reset");
    see(EventKind::peer_fenced, "silent for 30 s");
    see(EventKind::frame_resent, "");
    see(EventKind::frame_dropped, "it arrived before");
    see(EventKind::call_completed, "");
    see(EventKind::checkpoint_saved, "epoch", kNoPeer);
    see(EventKind::checkpoint_loaded, "epoch", kNoPeer);
    trace.on_event({.kind = EventKind::note, .worker = {0}, .text = "loss", .value = "0.5 or so"});
    EXPECT_EQ(trace.hears_notes(), level == LogLevel::info || level == LogLevel::debug);
    see(EventKind::reference_leaked, "'ps' holds a reference", kNoPeer);
    see(EventKind::mark, "frames are resent", kNoPeer);
    see(EventKind::node_stopped, "the worker has shut down", kNoPeer);
    see(EventKind::api_call, "add");
    return without_times(out.str());
  };
  EXPECT_EQ(told(LogLevel::off), "");
  EXPECT_EQ(told(LogLevel::error), "");
  EXPECT_EQ(told(LogLevel::warn),
            "level=warning worker=ps event=peer_lost peer=trainer why=\"silent for 30 s\"\n"
            "level=warning worker=ps event=reference_leaked which=\"'ps' holds a reference\"\n");
  EXPECT_EQ(told(LogLevel::info),
            "level=info worker=ps event=link_up peer=trainer\n"
            "level=info worker=ps event=link_lost peer=trainer why=reset\n"
            "level=warning worker=ps event=peer_lost peer=trainer why=\"silent for 30 s\"\n"
            "level=info worker=ps event=checkpoint_saved name=epoch\n"
            "level=info worker=ps event=checkpoint_loaded name=epoch\n"
            "level=info worker=ps event=note name=loss value=\"0.5 or so\"\n"
            "level=warning worker=ps event=reference_leaked which=\"'ps' holds a reference\"\n"
            "level=info worker=ps event=stopped why=\"the worker has shut down\"\n");
  const std::string all = told(LogLevel::debug);
  for (const char* line :
       {"level=debug worker=ps event=frame_resent peer=trainer\n",
        "event=frame_dropped peer=trainer why=\"it arrived before\"\n",
        "event=call_failed peer=trainer\n", "event=mark name=\"frames are resent\"\n"})
    EXPECT_NE(all.find(line), std::string::npos) << line << all;
}

}  // namespace
}  // namespace rehearsal::observe
