#include "core/node/hello.h"

#include <gtest/gtest.h>

#include <string>

namespace rehearsal {
namespace {

Greeting greeting() {
  return {.name = "ps",
          .life = 2,
          .world_size = 3,
          .peer_timeout = std::chrono::seconds(4),
          .libtorch = "2.11.0",
          .isa = "AVX2",
          .threads = 1,
          .functions = "add (Tensor,) -> Tensor\nmul () -> unit\n"};
}

std::string refusal(const Greeting& theirs) {
  const Status status = check_greeting(greeting(), theirs, "ps");
  return status.ok() ? "fits" : status.error().text;
}

TEST(Hello, AGreetingComesBackFromItsText) {
  const Result<Greeting> back = greeting_from_text(to_text(greeting()));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().name, "ps");
  EXPECT_EQ(back.value().life, 2u);
  EXPECT_EQ(back.value().world_size, 3u);
  EXPECT_EQ(back.value().peer_timeout, std::chrono::seconds(4));
  EXPECT_EQ(back.value().libtorch, "2.11.0");
  EXPECT_EQ(back.value().isa, "AVX2");
  EXPECT_EQ(back.value().threads, 1);
  EXPECT_EQ(back.value().functions, greeting().functions);
  EXPECT_EQ(to_text(back.value()), to_text(greeting()));
}

TEST(Hello, ThisProcessKnowsItsLibTorch) {
  const Greeting own = greeting_of_this_process("w", 2, "");
  EXPECT_TRUE(greeting_from_text(to_text(own)).ok());
  EXPECT_FALSE(own.libtorch.empty());
  EXPECT_FALSE(own.isa.empty());
  EXPECT_GE(own.threads, 1);
}

TEST(Hello, EveryTruncationIsAnErrorOrALessWellFilledGreeting) {
  // Until the last line but the functions is there it is an error; afterwards the functions differ.
  const std::string text = to_text(greeting());
  for (size_t size = 0; size < text.size(); ++size) {
    const Result<Greeting> theirs = greeting_from_text(text.substr(0, size));
    if (theirs.ok()) {
      EXPECT_NE(refusal(theirs.value()), "fits") << size;
    } else {
      EXPECT_EQ(theirs.error().kind, ErrorKind::protocol);
    }
  }
}

TEST(Hello, NonsenseIsRefused) {
  EXPECT_EQ(greeting_from_text("rehearsal 1\nps\n0\n3\nx\ny\n1\n0;;;\n").error().text,
            "the peer speaks another version");
  EXPECT_EQ(
      greeting_from_text("rehearsal 8\nps\n0\nthree\nstatic\n4000\nx\ny\n1\n0;;;\n").error().text,
      "the peer's greeting is malformed");
  EXPECT_EQ(
      greeting_from_text("rehearsal 8\nps\n-1\n3\nstatic\n4000\nx\ny\n1\n0;;;\n").error().text,
      "the peer's greeting is malformed");
  EXPECT_EQ(greeting_from_text("rehearsal 8\nps\n0\n3\nboth\n4000\nx\ny\n1\n0;;;\n").error().text,
            "the peer's greeting is malformed");
  EXPECT_EQ(
      greeting_from_text("rehearsal 8\nps\n0\n3\nstatic\n4000\nx\ny\n1x\n0;;;\n").error().text,
      "the peer's greeting is malformed");
  for (const std::string wrong : {"-1", "", "4s", "9223372036854775808"})
    EXPECT_EQ(greeting_from_text("rehearsal 8\nps\n0\n3\nstatic\n" + wrong + "\nx\ny\n1\n0;;;\n")
                  .error()
                  .text,
              "the peer's greeting is malformed")
        << wrong;
}

TEST(Hello, ALifeThatNoWorkerHasIsRefused) {
  // Goal: what a peer says of its lives overflows nothing that is counted by them. Method: the last
  // life that there can be, the next one, and the largest numbers that fit and do not.
  const auto error_of = [](const std::string& life) {
    const Result<Greeting> theirs =
        greeting_from_text("rehearsal 8\nps\n" + life + "\n3\nstatic\n4000\nx\ny\n1\n0;;;\n");
    return theirs.ok() ? Error{} : theirs.error();
  };
  EXPECT_EQ(error_of("65535").text, "");
  for (const std::string life : {"65536", "536870912", "4294967294", "4294967295"}) {
    EXPECT_EQ(error_of(life).text,
              "worker 'ps' says that it has had " + life +
                  " lives before; a worker has at most 65536: start the whole group anew");
    EXPECT_EQ(error_of(life).kind, ErrorKind::protocol);
    EXPECT_EQ(error_of(life).worker, "ps");
  }
  EXPECT_EQ(error_of("4294967296").text, "the peer's greeting is malformed");
}

TEST(Hello, WhatDiffersIsNamed) {
  EXPECT_EQ(refusal(greeting()), "fits");
  Greeting theirs = greeting();
  theirs.name = "trainer";
  EXPECT_EQ(refusal(theirs),
            "the worker of this rank is named 'trainer', not 'ps': all workers must run the same "
            "program");
  theirs = greeting();
  theirs.world_size = 4;
  EXPECT_EQ(refusal(theirs), "worker 'ps' expects 4 workers, not 3");
  theirs = greeting();
  theirs.dynamic = true;
  EXPECT_EQ(refusal(theirs),
            "worker 'ps' runs this program with a dynamic group, this worker with a "
            "static one");
  theirs = greeting();
  theirs.functions = "add (Tensor,) -> Tensor\nmul () -> int64\n";
  EXPECT_EQ(
      refusal(theirs),
      "worker 'ps' has other functions registered: here mul () -> unit, there mul () -> int64");
  theirs.functions = "add (Tensor,) -> Tensor\n";
  EXPECT_EQ(refusal(theirs),
            "worker 'ps' has other functions registered: here mul () -> unit, there nothing");
  theirs.functions = greeting().functions + "sub () -> unit\n";
  EXPECT_EQ(refusal(theirs),
            "worker 'ps' has other functions registered: here nothing, there sub () -> unit");
}

TEST(Hello, AnotherLibTorchIsNoRefusalButNoSameArithmetic) {
  for (const auto change : {+[](Greeting& theirs) { theirs.libtorch = "2.12.0"; },
                            +[](Greeting& theirs) { theirs.isa = "AVX512"; },
                            +[](Greeting& theirs) { theirs.threads = 2; }}) {
    Greeting theirs = greeting();
    change(theirs);
    EXPECT_EQ(refusal(theirs), "fits");
    EXPECT_FALSE(same_arithmetic(greeting(), theirs));
  }
  EXPECT_TRUE(same_arithmetic(greeting(), greeting()));
}

}  // namespace
}  // namespace rehearsal
