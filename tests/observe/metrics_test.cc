#include "observe/metrics.h"

#include <gtest/gtest.h>

#include "core/wire/message.h"
#include "observe/metrics_text.h"
#include "observe/traces.h"

namespace rehearsal::observe {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr WorkerId kUs{1};
constexpr WorkerId kPeer{0};

CausalId id(uint64_t ordinal) { return {{7}, {1, 2}, ordinal}; }
Instant at(Duration time) { return Instant(time); }

// Tells events of worker 1, `client`, to its metrics.
class MetricsTest : public ::testing::Test {
 protected:
  void call(uint64_t ordinal, CallForm form, Duration when, std::string_view function = "add") {
    metrics.on_event({.kind = EventKind::api_call,
                      .worker = kUs,
                      .peer = kPeer,
                      .id = id(ordinal),
                      .digest = static_cast<uint64_t>(form),
                      .text = function,
                      .when = at(when)});
  }
  void complete(uint64_t ordinal, Duration when, uint64_t outcome = 0) {
    metrics.on_event({.kind = EventKind::call_completed,
                      .worker = kUs,
                      .peer = kPeer,
                      .id = id(ordinal),
                      .number = outcome,
                      .when = at(when)});
  }
  void arrive(uint64_t ordinal, Duration when, uint64_t bytes = 100) {
    metrics.on_event({.kind = EventKind::frame,
                      .worker = kUs,
                      .peer = kPeer,
                      .id = id(ordinal),
                      .message_type = Message{Call{}}.type(),
                      .bytes = bytes,
                      .when = at(when)});
  }
  void start(uint64_t ordinal, Duration when, std::string_view function = "add") {
    metrics.on_event({.kind = EventKind::call_executed,
                      .worker = kUs,
                      .peer = kPeer,
                      .id = id(ordinal),
                      .text = function,
                      .when = at(when)});
  }
  void serve(uint64_t ordinal, Duration when, uint64_t outcome = 0,
             std::string_view function = "add") {
    metrics.on_event({.kind = EventKind::call_served,
                      .worker = kUs,
                      .peer = kPeer,
                      .id = id(ordinal),
                      .number = outcome,
                      .text = function,
                      .when = at(when)});
  }
  void see(EventKind kind, uint64_t bytes = 0, uint64_t number = 0) {
    metrics.on_event(
        {.kind = kind, .worker = kUs, .peer = kPeer, .number = number, .bytes = bytes});
  }

  Metrics metrics{{"ps", "client"}, kUs};
};

TEST_F(MetricsTest, CountsCallsByFunctionPeerFormAndError) {
  // Goal: what the caller sees. Method: calls of each form, of which one fails and one is open.
  call(1, CallForm::rpc_sync, microseconds(0));
  call(2, CallForm::rpc_async, microseconds(5));
  call(3, CallForm::remote, microseconds(6), "make");
  call(4, CallForm::rpc_sync, microseconds(7), "sub");
  complete(1, microseconds(30));
  complete(2, microseconds(15), 1 + static_cast<uint64_t>(ErrorKind::timeout));
  const MetricsSnapshot seen = metrics.snapshot(at(seconds(1)));
  EXPECT_EQ(seen.worker, "client");
  const CallCounts add = seen.made.at("add").at(kPeer.value);
  EXPECT_EQ(add.begun, 2u);
  EXPECT_EQ(add.ended, 2u);
  EXPECT_EQ(add.by_form.at(CallForm::rpc_sync), 1u);
  EXPECT_EQ(add.by_form.at(CallForm::rpc_async), 1u);
  EXPECT_EQ(add.errors, (std::map<ErrorKind, uint64_t>{{ErrorKind::timeout, 1}}));
  EXPECT_EQ(seen.made.at("make").at(kPeer.value).begun, 1u);
  EXPECT_EQ(seen.made.at("make").at(kPeer.value).ended, 0u);
  EXPECT_EQ(seen.unanswered, 1u);  // `sub`; nobody waits for `make`.
  EXPECT_EQ(seen.made_times.at("add").total.count(), 2u);
  EXPECT_EQ(seen.made_times.at("add").total.sum(), microseconds(40));
  EXPECT_FALSE(seen.made_times.contains("make"));
}

TEST_F(MetricsTest, TellsHowManyCallsWaitHereAndForHowLong) {
  // Goal: the queue and its age. Method: three calls arrive; one starts, one is refused.
  arrive(1, milliseconds(10));
  arrive(2, milliseconds(20));
  arrive(3, milliseconds(30));
  MetricsSnapshot seen = metrics.snapshot(at(milliseconds(50)));
  EXPECT_EQ(seen.waiting, 3u);
  EXPECT_EQ(seen.running, 0u);
  EXPECT_EQ(seen.oldest_waiting, milliseconds(40));
  start(1, milliseconds(60));
  serve(2, milliseconds(61), 1 + static_cast<uint64_t>(ErrorKind::overloaded), "");
  seen = metrics.snapshot(at(milliseconds(70)));
  EXPECT_EQ(seen.waiting, 1u);
  EXPECT_EQ(seen.running, 1u);
  EXPECT_EQ(seen.oldest_waiting, milliseconds(40));
  EXPECT_EQ(seen.served_times.at("add").waiting.sum(), milliseconds(50));
  EXPECT_EQ(seen.served.at("").at(0).begun, 0u);
  EXPECT_EQ(seen.served.at("").at(0).ended, 1u);
  serve(1, milliseconds(75));
  EXPECT_EQ(metrics.snapshot(at(milliseconds(80))).served_times.at("add").total.sum(),
            milliseconds(65));
  metrics.on_event({.kind = EventKind::node_stopped, .worker = kUs});
  seen = metrics.snapshot(at(seconds(9)));
  EXPECT_EQ(seen.waiting + seen.running + seen.unanswered, 0u);
  EXPECT_EQ(seen.oldest_waiting, Duration(0));
}

TEST_F(MetricsTest, CountsTrafficWithEachPeer) {
  // Goal: messages, bytes, resends, drops, links. Method: each event once or twice.
  arrive(1, seconds(1), 300);
  see(EventKind::peer_up);
  see(EventKind::frame_sent, 70, 1);
  see(EventKind::frame_sent, 30, 2);
  see(EventKind::peer_lost);
  see(EventKind::peer_up);
  see(EventKind::frame_resent, 30, 2);
  see(EventKind::frame_dropped);
  see(EventKind::peer_fenced);
  see(EventKind::ack_frame);
  const MetricsSnapshot seen = metrics.snapshot({});
  ASSERT_EQ(seen.peers.size(), 1u);
  EXPECT_EQ(seen.peers.at(0), (PeerCounts{.messages_sent = 2,
                                          .bytes_sent = 100,
                                          .messages_received = 1,
                                          .bytes_received = 300,
                                          .messages_resent = 1,
                                          .bytes_resent = 30,
                                          .frames_dropped = 1,
                                          .links_up = 2,
                                          .links_lost = 1,
                                          .fenced = 1}));
}

TEST_F(MetricsTest, WhatHadNotLeftIsNotResent) {
  // Goal: a resend is a message that travels again. Method: messages that are sent before the first
  // link, on a link, without one, and in a later life of the peer, whose numbers begin anew.
  const auto resent = [this] { return metrics.snapshot({}).peers.at(0).messages_resent; };
  see(EventKind::peer_up);
  see(EventKind::frame_sent, 10, 1);
  see(EventKind::frame_resent, 10, 1);
  EXPECT_EQ(resent(), 0u);
  see(EventKind::frame_sent, 10, 2);
  see(EventKind::peer_lost);
  see(EventKind::frame_sent, 10, 3);
  see(EventKind::peer_lost);  // An attempt that failed.
  see(EventKind::peer_up);
  see(EventKind::frame_resent, 10, 2);
  see(EventKind::frame_resent, 10, 3);
  EXPECT_EQ(resent(), 1u);
  see(EventKind::peer_lost);
  see(EventKind::peer_up);
  see(EventKind::frame_resent, 10, 3);
  EXPECT_EQ(resent(), 2u);
  see(EventKind::peer_fenced);
  see(EventKind::peer_up);
  see(EventKind::frame_sent, 10, 1);
  see(EventKind::frame_resent, 10, 1);
  EXPECT_EQ(resent(), 2u);
}

TEST_F(MetricsTest, WhatAnotherWorkerDoesIsNotCounted) {
  // Goal: one of several workers that are heard. Method: events of the peer, through a fan-out.
  Metrics other({"ps", "client"}, kPeer);
  Traces both({&metrics, &other});
  both.on_event({.kind = EventKind::frame_sent, .worker = kPeer, .peer = kUs, .bytes = 8});
  EXPECT_TRUE(metrics.snapshot({}).peers.empty());
  EXPECT_EQ(other.snapshot({}).peers.at(1).bytes_sent, 8u);
}

TEST_F(MetricsTest, TheTextOfPrometheusHasEverySeriesWithItsTypeAndHelp) {
  // Goal: the exposition format, byte for byte where it is not a histogram. Method: a few events.
  call(1, CallForm::rpc_sync, microseconds(0));
  complete(1, microseconds(12'500), 1 + static_cast<uint64_t>(ErrorKind::timeout));
  arrive(2, milliseconds(10), 77);
  const std::string text = metrics_text(metrics.snapshot(at(milliseconds(1'510))));
  for (const char* line : {
           "# HELP rehearsal_calls_total Number of calls made by this worker.\n"
           "# TYPE rehearsal_calls_total counter\n"
           "rehearsal_calls_total{worker=\"client\",function=\"add\",peer=\"ps\",form=\"rpc_sync\"}"
           " 1\n",
           "rehearsal_calls_errors_total{worker=\"client\",function=\"add\",peer=\"ps\","
           "kind=\"timeout\"} 1\n",
           "# TYPE rehearsal_call_seconds histogram\n",
           "rehearsal_call_seconds_bucket{worker=\"client\",function=\"add\",le=\"0.01024\"} 0\n",
           "rehearsal_call_seconds_bucket{worker=\"client\",function=\"add\",le=\"0.02048\"} 1\n",
           "rehearsal_call_seconds_bucket{worker=\"client\",function=\"add\",le=\"+Inf\"} 1\n",
           "rehearsal_call_seconds_sum{worker=\"client\",function=\"add\"} 0.0125\n",
           "rehearsal_call_seconds_count{worker=\"client\",function=\"add\"} 1\n",
           "# TYPE rehearsal_served_waiting gauge\n"
           "rehearsal_served_waiting{worker=\"client\"} 1\n",
           "rehearsal_served_waiting_oldest_seconds{worker=\"client\"} 1.5\n",
           "rehearsal_received_bytes_total{worker=\"client\",peer=\"ps\"} 77\n",
       })
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  EXPECT_EQ(text, metrics_text(metrics.snapshot(at(milliseconds(1'510)))));
  EXPECT_EQ(text.back(), '\n');
}

TEST_F(MetricsTest, KeepsTheLatestNumberOfEachNote) {
  // Goal: a curve of what the program notes, and no memory without end. Method: numbers and a word;
  // more names than are kept.
  const auto note = [this](const std::string& name, const std::string& value, uint64_t is_number) {
    metrics.on_event({.kind = EventKind::note,
                      .worker = kUs,
                      .number = is_number,
                      .text = name,
                      .value = value});
  };
  EXPECT_EQ(metrics_text(metrics.snapshot({})).find("rehearsal_note"), std::string::npos);
  note("loss", "0.5", 1);
  note("phase", "warm-up", 0);
  note("loss", "0.25", 1);
  EXPECT_EQ(metrics.snapshot({}).notes, (std::map<std::string, std::string>{{"loss", "0.25"}}));
  const std::string line =
      "# TYPE rehearsal_note gauge\nrehearsal_note{worker=\"client\",note=\"loss\"} 0.25\n";
  EXPECT_NE(metrics_text(metrics.snapshot({})).find(line), std::string::npos);
  for (size_t i = 0; i < 2 * Metrics::kNotesMax; ++i) note("n" + std::to_string(i), "1", 1);
  note("loss", "0.125", 1);
  EXPECT_EQ(metrics.snapshot({}).notes.size(), Metrics::kNotesMax);
  EXPECT_EQ(metrics.snapshot({}).notes.at("loss"), "0.125");
}

TEST_F(MetricsTest, CountsContextsPassesAndSendFunctions) {
  // Goal: what is here now, and what there was in total. Method: two contexts, three passes, of
  // which one fails and one goes on; the node ends.
  const auto pass = [this](EventKind kind, uint64_t epoch, std::string_view error = {}) {
    metrics.on_event(
        {.kind = kind, .worker = kUs, .peer = kPeer, .id = id(1), .number = epoch, .text = error});
  };
  see(EventKind::context_opened);
  see(EventKind::context_opened);
  see(EventKind::context_released);
  pass(EventKind::pass_started, 1);
  pass(EventKind::pass_ended, 1);
  pass(EventKind::pass_started, 2);
  pass(EventKind::pass_ended, 2, "no gradient came back");
  pass(EventKind::pass_started, 3);
  MetricsSnapshot seen = metrics.snapshot({});
  EXPECT_EQ(seen.contexts, 1u);
  EXPECT_EQ(seen.passes, 1u);
  EXPECT_EQ(seen.passes_begun, 3u);
  EXPECT_EQ(seen.passes_failed, 1u);
  EXPECT_EQ(metrics_text(seen).find("rehearsal_send_functions"), std::string::npos);
  EXPECT_EQ(metrics_text(seen).find("rehearsal_peer_peak"), std::string::npos);
  EXPECT_EQ(metrics_text(seen).find("rehearsal_poll_looks_total"), std::string::npos);
  seen.send_functions = 12;
  seen.polling = PollingCounts{.looks = 9, .yields = 4, .sleeps = 2, .wakes = 1};
  seen.peaks = PeerPeaks{.gaps = 3, .references = 40, .served_bytes = 70};
  const std::string text = metrics_text(seen);
  for (const char* line : {"# TYPE rehearsal_autograd_contexts gauge\n"
                           "rehearsal_autograd_contexts{worker=\"client\"} 1\n",
                           "# TYPE rehearsal_send_functions gauge\n"
                           "rehearsal_send_functions{worker=\"client\"} 12\n",
                           "# TYPE rehearsal_peer_peak gauge\n"
                           "rehearsal_peer_peak{worker=\"client\",thing=\"decoded_bytes\"} 0\n"
                           "rehearsal_peer_peak{worker=\"client\",thing=\"gaps\"} 3\n",
                           "rehearsal_peer_peak{worker=\"client\",thing=\"references\"} 40\n",
                           "rehearsal_peer_peak{worker=\"client\",thing=\"served_bytes\"} 70\n",
                           "# TYPE rehearsal_poll_looks_total counter\n"
                           "rehearsal_poll_looks_total{worker=\"client\"} 9\n",
                           "rehearsal_poll_yields_total{worker=\"client\"} 4\n",
                           "rehearsal_poll_sleeps_total{worker=\"client\"} 2\n",
                           "rehearsal_thread_wakes_total{worker=\"client\"} 1\n",
                           "rehearsal_passes_running{worker=\"client\"} 1\n",
                           "# TYPE rehearsal_passes_started_total counter\n"
                           "rehearsal_passes_started_total{worker=\"client\"} 3\n",
                           "rehearsal_passes_failed_total{worker=\"client\"} 1\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "is missing in\n" << text;
  metrics.on_event({.kind = EventKind::node_stopped, .worker = kUs});
  seen = metrics.snapshot({});
  EXPECT_EQ(seen.contexts + seen.passes, 0u);
  EXPECT_EQ(seen.passes_begun, 3u);
}

TEST_F(MetricsTest, LabelsAreEscaped) {
  // Goal: no name breaks a line or a label. Method: a function with all that must be escaped.
  call(1, CallForm::rpc_sync, seconds(0), "a\\b\"c\nd");
  const std::string text = metrics_text(metrics.snapshot({}));
  EXPECT_NE(text.find("function=\"a\\\\b\\\"c\\nd\",peer"), std::string::npos) << text;
}

}  // namespace
}  // namespace rehearsal::observe
