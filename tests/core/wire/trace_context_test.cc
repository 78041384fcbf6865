#include "core/wire/trace_context.h"

#include <gtest/gtest.h>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

const char* const kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const char* const kText = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(TraceContext, ATraceparentIsReadAndWrittenAsItWas) {
  // Goal: the four parts. Method: the standard's example there and back.
  const auto context = parse_traceparent(kText);
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(context->trace, (Hash128{0x4bf92f3577b34da6, 0xa3ce929d0e0e4736}));
  EXPECT_EQ(context->parent, 0x00f067aa0ba902b7u);
  EXPECT_EQ(context->flags, 1);
  EXPECT_EQ(to_traceparent(*context), kText);
}

TEST(TraceContext, ALaterVersionIsReadAsFarAsThisOneGoes) {
  // Goal: what the standard asks of version 00. Method: more parts behind, unknown flags.
  const std::string later = "cc" + std::string(kText).substr(2);
  EXPECT_EQ(to_traceparent(parse_traceparent(later).value()), kText);
  EXPECT_EQ(to_traceparent(parse_traceparent(later + "-what-is-new").value()), kText);
  const std::string flags = std::string(kText).substr(0, 53) + "ff";
  EXPECT_EQ(parse_traceparent(flags)->flags, kTraceFlags);
}

TEST(TraceContext, WhatIsMalformedIsRefused) {
  // Goal: strict syntax. Method: a text for each way to be wrong, and every prefix.
  const std::string good = kText;
  const auto with = [&good](size_t at, const std::string& part) {
    std::string text = good;
    return text.replace(at, part.size(), part);
  };
  for (const std::string& text :
       {with(0, "ff"), with(0, "0g"), with(2, "_"), with(35, "_"), with(52, "_"), with(3, "4B"),
        with(3, std::string(32, '0')), with(36, std::string(16, '0')), with(53, "0 "), good + "-",
        good + "0", " " + good, "cc" + good.substr(2) + "x"})
    EXPECT_FALSE(parse_traceparent(text).has_value()) << text;
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_traceparent(good.substr(0, length)).has_value()) << length;
}

std::string traceparent(CallContext& context) { return context.traceparent(); }
std::vector<std::string> both(CallContext& context) {
  return {context.traceparent(), context.rpc_sync("c", &traceparent)};
}

class TracedCallTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("traceparent", &traceparent).function("both", &both);
    begin();
  }
};

TEST_F(TracedCallTest, ACallCarriesTheTraceAndNestedCallsHandItOn) {
  // Goal: the same trace all the way, and the call as the parent of what it calls. Method: a calls
  // b, which calls c; twice, as the parents of two calls differ.
  const Calls traced = a().calls.with_traceparent(kText);
  const std::vector<std::string> first = traced.rpc_sync("b", &both);
  const std::vector<std::string> second = traced.rpc_sync("b", &both);
  EXPECT_EQ(first.at(0), kText);
  EXPECT_EQ(second.at(0), kText);
  for (const std::string& text : {first.at(1), second.at(1)}) {
    ASSERT_TRUE(parse_traceparent(text).has_value()) << text;
    EXPECT_EQ(text.substr(3, 32), kTrace);
    EXPECT_NE(text, kText);
  }
  EXPECT_NE(first.at(1), second.at(1));
  const CallId call{a().trace.all(EventKind::api_call).at(0).event.id};
  EXPECT_EQ(first.at(1), to_traceparent(within(*parse_traceparent(kText), call)));
}

TEST_F(TracedCallTest, ACallWithoutATraceHasNone) {
  // Goal: nothing is invented. Method: a call beside a traced one.
  EXPECT_EQ(a().calls.rpc_sync("b", &both), (std::vector<std::string>{"", ""}));
}

TEST_F(TracedCallTest, TextThatIsNoTraceparentIsRefusedAtTheCaller) {
  // Goal: the mistake is told where it was made. Method: a text that is none.
  const Error error = error_of([&] { return a().calls.with_traceparent("00-12-34-01"); });
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments);
  EXPECT_NE(error.text.find("'00-12-34-01' is no traceparent"), std::string::npos);
  EXPECT_EQ(error.worker, "a");
}

}  // namespace
}  // namespace rehearsal
