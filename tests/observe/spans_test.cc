#include "observe/spans.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rehearsal::observe {
namespace {

using std::chrono::microseconds;

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"ps", "trainer"};
  return all;
}
CausalId call_id(uint64_t ordinal) { return {{7}, {1, 2}, ordinal}; }
Instant at(int64_t time) { return Instant(microseconds(time)); }

Span made(uint64_t ordinal, int64_t begin, int64_t end, CallForm form = CallForm::rpc_sync) {
  return {.call = call_id(ordinal),
          .form = form,
          .worker = 1,
          .peer = 0,
          .function = "add",
          .begin = at(begin),
          .end = at(end),
          .error = {}};
}
Span served(uint64_t ordinal, int64_t begin, int64_t end) {
  return {.call = call_id(ordinal),
          .served = true,
          .worker = 0,
          .peer = 1,
          .function = "add",
          .begin = at(begin),
          .end = at(end),
          .error = {}};
}

void tell(Spans& spans, EventKind kind, uint32_t worker, uint64_t ordinal, int64_t when,
          uint64_t number = 0, CallForm form = {}) {
  spans.on_event({.kind = kind,
                  .worker = {worker},
                  .peer = {1 - worker},
                  .id = call_id(ordinal),
                  .number = number,
                  .digest = static_cast<uint64_t>(form),
                  .text = kind == EventKind::call_completed ? "" : "add",
                  .when = at(when)});
}

TEST(Spans, ACallHasASpanAtItsCallerAndOneAtItsCallee) {
  // Goal: begin, end, error and names. Method: one call of each form, as two workers see it.
  Spans spans;
  tell(spans, EventKind::api_call, 1, 1, 10);
  tell(spans, EventKind::call_executed, 0, 1, 20);
  tell(spans, EventKind::call_served, 0, 1, 30);
  tell(spans, EventKind::call_completed, 1, 1, 40,
       1 + static_cast<uint64_t>(ErrorKind::remote_exception));
  tell(spans, EventKind::api_call, 1, 2, 50, 0, CallForm::remote);
  tell(spans, EventKind::api_call, 1, 3, 60, 0, CallForm::rpc_async);
  ASSERT_EQ(spans.ended().size(), 3u);  // The last call has not ended.
  EXPECT_EQ(spans.ended()[0], served(1, 20, 30));
  Span failed = made(1, 10, 40);
  failed.error = ErrorKind::remote_exception;
  EXPECT_EQ(spans.ended()[1], failed);
  EXPECT_EQ(spans.ended()[2], made(2, 50, 50, CallForm::remote));
  EXPECT_EQ(span_name(spans.ended()[0], names()), "add");
  EXPECT_EQ(span_name(spans.ended()[1], names()), "rpc_sync#add(trainer -> ps)");
  EXPECT_EQ(span_name(spans.ended()[2], names()), "rpc_remote#add(trainer -> ps)");
  EXPECT_EQ(span_name(made(3, 0, 0, CallForm::rpc_async), names()), "rpc_async#add(trainer -> ps)");
}

TEST(Spans, ABackwardPassEndsAtBothSidesWithItsCall) {
  // Goal: nothing stays open. Method: the events of a pass, which has no answer; then those of a
  // call that is still served when its caller at another worker gives up.
  Spans spans;
  for (const EventKind kind :
       {EventKind::api_call, EventKind::call_executed, EventKind::call_completed})
    spans.on_event(
        {.kind = kind, .worker = {0}, .peer = {0}, .id = call_id(1), .text = "backward"});
  ASSERT_EQ(spans.ended().size(), 2u);
  EXPECT_TRUE(spans.ended()[0].served);
  EXPECT_EQ(span_name(spans.ended()[1], names()), "rpc_sync#backward(ps -> ps)");
  tell(spans, EventKind::api_call, 1, 2, 10);
  tell(spans, EventKind::call_executed, 0, 2, 20);
  tell(spans, EventKind::call_completed, 1, 2, 30, 1 + static_cast<uint64_t>(ErrorKind::timeout));
  tell(spans, EventKind::call_served, 0, 2, 40);
  EXPECT_EQ(spans.ended().back(), served(2, 20, 40));
}

TEST(Spans, TheOldestAreForgotten) {
  // Goal: memory is bounded. Method: three spans where two have room.
  Spans spans(2);
  for (uint64_t call = 1; call <= 3; ++call) {
    tell(spans, EventKind::api_call, 1, call, 10);
    tell(spans, EventKind::call_completed, 1, call, 20);
  }
  ASSERT_EQ(spans.ended().size(), 2u);
  EXPECT_EQ(spans.ended()[0].call, call_id(2));
  EXPECT_EQ(spans.forgotten(), 1u);
}

TEST(Spans, InTheFileThePartOfTheCalleeIsNestedInItsCall) {
  // Goal: what Perfetto draws. Method: the events of one call, in their order.
  const SpanFile file{names(), {made(1, 10, 40), served(1, 20, 30)}};
  const auto json = nlohmann::json::parse(perfetto_text(file));
  std::vector<std::string> line;
  const nlohmann::json* slice = nullptr;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "b" || event.at("ph") == "e")
      line.push_back(event.at("ph").get<std::string>() + " " + event.at("name").get<std::string>() +
                     " " + event.at("ts").dump());
    if (event.at("ph") == "X") slice = &event;
  }
  EXPECT_EQ(line, (std::vector<std::string>{"b rpc_sync#add(trainer -> ps) 10.0", "b add 20.0",
                                            "e add 30.0", "e rpc_sync#add(trainer -> ps) 40.0"}));
  ASSERT_NE(slice, nullptr);
  EXPECT_EQ(slice->at("pid"), 1);
  EXPECT_EQ(slice->at("dur"), 10.0);
}

TEST(Spans, AFileIsReadBackAsItWas) {
  // Goal: files can be merged later. Method: every kind of span there and back; then broken texts.
  Span failed = made(1, 10, 40);
  failed.error = ErrorKind::timeout;
  SpanFile file{names(), {failed, made(2, 11, 11, CallForm::remote), served(3, 12, 100)}, 5};
  const std::string text = perfetto_text(file);
  EXPECT_EQ(read_spans(text).or_throw(), file);
  for (const std::string& broken :
       {std::string("{"), std::string("[]"), std::string("{\"traceEvents\":[]}"),
        text.substr(0, text.size() / 2)})
    EXPECT_EQ(read_spans(broken).error().kind, ErrorKind::bad_arguments) << broken;
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"form\":0", "\"form\":9"},
           {"\"error_kind\":0", "\"error_kind\":99"},
           {"\"call\":\"0", "\"call\":\"x"},
           {"\"begin_ns\":10000", "\"begin_ns\":null"}}) {
    std::string changed = text;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    EXPECT_FALSE(read_spans(changed).ok()) << from;
  }
}

TEST(Spans, MergingShiftsWhatCannotBe) {
  // Goal: machines' clocks have different zeros. Method: a callee far away in time, and one that
  // fits as it is.
  const SpanFile caller{names(), {made(1, 100, 200), made(2, 300, 340)}, 1};
  const SpanFile near{names(), {served(1, 190, 195)}, 2};
  const SpanFile all = merge({caller, near}).or_throw();
  EXPECT_EQ(all.spans.back(), served(1, 190, 195));
  EXPECT_EQ(all.forgotten, 3u);
  const SpanFile far{names(), {served(1, 9'000'110, 9'000'130), served(2, 9'000'310, 9'000'320)}};
  const SpanFile shifted = merge({caller, far}).or_throw();
  EXPECT_EQ(shifted.spans[2], served(1, 115, 135));
  EXPECT_EQ(shifted.spans[3], served(2, 315, 325));
  const SpanFile back = merge({far, caller}).or_throw();
  EXPECT_EQ(back.spans[2], made(1, 9'000'095, 9'000'195));
  EXPECT_EQ(merge({caller, {{"a", "b"}, {}}}).error().kind, ErrorKind::bad_arguments);
}

}  // namespace
}  // namespace rehearsal::observe
