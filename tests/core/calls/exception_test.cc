#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

struct OutOfStock : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::string shelf;
  int64_t left = 0;
  at::Tensor sample;
  friend void describe(OutOfStock& thrown, auto&& fields) {
    fields(thrown.shelf, thrown.left, thrown.sample);
  }
};
struct SoldOut final : OutOfStock {
  using OutOfStock::OutOfStock;
};
struct Closed : std::logic_error {
  explicit Closed(const char* text) : std::logic_error(text) {}
};
// Knows nothing but its fields, and cannot be copied when it matters.
struct Numbered : std::exception {
  Numbered() = default;
  Numbered(const Numbered&) : std::exception() { throw std::bad_alloc(); }
  int64_t number = 0;
  friend void describe(Numbered& thrown, auto&& fields) { fields(thrown.number); }
};
struct Fragile : std::runtime_error {
  explicit Fragile(const std::string& text) : std::runtime_error(text) {
    if (text == "breaks") throw std::domain_error("it cannot be made");
  }
};
// Of a program that may meet a newer one, which sends a second field.
struct Late : std::runtime_error {
  using std::runtime_error::runtime_error;
  int64_t minutes = 0;
  UnknownFields unknown;
  friend void describe(Late& thrown, auto&& fields) {
    fields.versioned("Late", thrown.unknown, thrown.minutes);
  }
};
struct NewerLate : Late {
  using Late::Late;
  std::string why;
  friend void describe(NewerLate& thrown, auto&& fields) {
    fields.versioned("Late", thrown.unknown, thrown.minutes, thrown.why);
  }
};

// Thrown for a tensor that cannot be sent.
OutOfStock out_of_stock(const std::string& text, at::Tensor sample) {
  OutOfStock thrown(text);
  thrown.shelf = "B\n7";
  thrown.left = 3;
  thrown.sample = std::move(sample);
  return thrown;
}

int64_t throws(const std::string& what) {
  if (what == "stock") throw out_of_stock("none\nleft", at::arange(3));
  if (what == "unsendable")
    throw out_of_stock("none", at::empty({2}, at::TensorOptions().device(at::kMeta)));
  if (what == "sold") throw SoldOut("all sold");
  if (what == "closed") throw Closed("on Sundays");
  if (what == "fragile") throw Fragile("fine");
  if (what == "range") throw std::out_of_range("beyond");
  if (what == "logic") throw std::logic_error("plain");
  if (what == "number") throw 42;
  if (what == "torch") TORCH_CHECK(false, "no such shape");
  return 1;
}
void throws_at_last(StreamWriter<int64_t>& out, const std::string& what) {
  out.write(1);
  out.write(throws(what));
}
int64_t throws_numbered() {
  struct Made : Numbered {
    explicit Made(int64_t given) { number = given; }
  };
  throw Made(11);
}
int64_t relay(CallContext& context, const std::string& what) {
  return context.rpc_sync("c", &throws, what);
}
int64_t relay_changed(CallContext& context, const std::string& what) {
  try {
    return context.rpc_sync("c", &throws, what);
  } catch (OutOfStock& thrown) {
    thrown.left = 100;
    throw;
  }
}
int64_t relay_wrapped(CallContext& context, const std::string& what) {
  try {
    return context.rpc_sync("c", &throws, what);
  } catch (const OutOfStock& thrown) {
    throw Closed(thrown.what());
  }
}
Future<int64_t> relay_future(CallContext& context, const std::string& what) {
  return context.rpc_async("c", &throws, what);
}
int64_t throws_fragile(const std::string& text) {
  // The text becomes one that the constructor refuses only after it was thrown.
  struct Late : Fragile {
    explicit Late(std::string given) : Fragile("fine"), late(std::move(given)) {}
    const char* what() const noexcept override { return late.c_str(); }
    std::string late;
  };
  throw Late(text);
}

class ExceptionTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("throws", &throws).function("throws_numbered", &throws_numbered);
    registry.function("relay", &relay).function("relay_changed", &relay_changed);
    registry.function("relay_wrapped", &relay_wrapped).function("relay_future", &relay_future);
    registry.function("throws_fragile", &throws_fragile);
    registry.function("throws_at_last", &throws_at_last);
    registry.exception<OutOfStock>("OutOfStock").exception<Closed>("Closed");
    registry.exception<Numbered>("Numbered").exception<Fragile>("Fragile");
    registry.exception<std::out_of_range>("out_of_range");
  }
  // The exception of type E that `body` throws, handed to `look`.
  template <class E, class F, class G>
  static void expect_thrown(F body, G look) {
    try {
      (void)body();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const E& thrown) {
      look(thrown);
    }
  }
};

TEST_F(ExceptionTest, ARegisteredTypeArrivesAsItselfWithItsTextAndFields) {
  // Goal: type, text with its newlines, fields and a tensor. Method: one call, caught by its type.
  begin();
  expect_thrown<OutOfStock>([&] { return a().calls.rpc_sync("b", &throws, "stock"); },
                            [](const OutOfStock& thrown) {
                              EXPECT_STREQ(thrown.what(), "none\nleft");
                              EXPECT_EQ(thrown.shelf, "B\n7");
                              EXPECT_EQ(thrown.left, 3);
                              EXPECT_TRUE(at::equal(thrown.sample, at::arange(3)));
                              const Error* error = rehearsal::error_of(thrown);
                              ASSERT_NE(error, nullptr);
                              EXPECT_EQ(error->kind, ErrorKind::remote_exception);
                              EXPECT_EQ(error->worker, "b");
                              EXPECT_EQ(error->function, "throws");
                              EXPECT_TRUE(error->chain.empty());
                              EXPECT_NE(error->type.find("OutOfStock"), std::string::npos);
                              EXPECT_NE(error->text.find("none\nleft"), std::string::npos);
                            });
}

TEST_F(ExceptionTest, AllFormsOfWaitingThrowItAndAResultHasTheError) {
  // Goal: wait, to_here and result of one failure. Method: each form; a reference is fetched twice.
  begin();
  const Future<int64_t> future = a().calls.rpc_async("b", &throws, "stock");
  EXPECT_THROW((void)future.wait(), OutOfStock);
  EXPECT_THROW((void)future.wait(), OutOfStock);
  EXPECT_EQ(future.result().error().kind, ErrorKind::remote_exception);
  const RRef<int64_t> rref = a().calls.remote("b", &throws, "stock");
  EXPECT_THROW((void)rref.to_here(), OutOfStock);
  EXPECT_THROW((void)a().calls.to_here(rref), OutOfStock);
  EXPECT_THROW((void)rref.to_here_async().wait(), OutOfStock);
  const RRef<int64_t> own = a().calls.remote("a", &throws, "stock");
  EXPECT_THROW((void)own.local_value(), OutOfStock);
  EXPECT_THROW((void)a().calls.rpc_sync("a", &throws, "stock"), OutOfStock);
  EXPECT_THROW(throw_error(future.result().error()), OutOfStock);
}

TEST(VersionedExceptions, KeepWhatANewerProgramSent) {
  // Method: what a newer program writes is read by an older one, whose exception is sent on.
  NewerLate sent("late");
  sent.minutes = 5;
  sent.why = "snow";
  const auto pass = []<class From, class To>(const From& from, To& to) {
    Payload payload;
    ValueWriter writer(payload);
    detail::write_fields(from, writer);
    writer.finish();
    ValueReader reader(payload);
    const std::string text = reader.text();
    const detail::Rethrown<To> made(text, reader, Error{});
    EXPECT_STREQ(made.what(), from.what());
    to = made;
  };
  Late older("");
  pass(sent, older);
  EXPECT_EQ(older.minutes, 5);
  NewerLate back("");
  pass(older, back);
  EXPECT_EQ(back.minutes, 5);
  EXPECT_EQ(back.why, "snow");
}

TEST_F(ExceptionTest, AContinuationsExceptionIsRethrownToo) {
  begin();
  const Future<int64_t> one = a().calls.rpc_async("b", &throws, "fine");
  EXPECT_THROW((void)one.then([](int64_t) -> int64_t { throw Closed("here"); }).wait(), Closed);
  EXPECT_THROW((void)one.then([](int64_t) -> int64_t { throw std::domain_error("x"); }).wait(),
               RpcError);
}

TEST_F(ExceptionTest, ItPassesThroughWorkersThatDoNotCatchIt) {
  // Goal: type, fields and the chain after a worker in between; what that one changes goes along.
  begin();
  expect_thrown<OutOfStock>([&] { return a().calls.rpc_sync("b", &relay, "stock"); },
                            [](const OutOfStock& thrown) {
                              EXPECT_EQ(thrown.left, 3);
                              EXPECT_TRUE(at::equal(thrown.sample, at::arange(3)));
                              const Error* error = rehearsal::error_of(thrown);
                              ASSERT_NE(error, nullptr);
                              EXPECT_EQ(error->worker, "c");
                              EXPECT_EQ(error->function, "throws");
                              EXPECT_EQ(error->chain, std::vector<std::string>{"b"});
                            });
  expect_thrown<OutOfStock>([&] { return a().calls.rpc_sync("b", &relay_changed, "stock"); },
                            [](const OutOfStock& thrown) { EXPECT_EQ(thrown.left, 100); });
  expect_thrown<Closed>([&] { return a().calls.rpc_sync("b", &relay_wrapped, "stock"); },
                        [](const Closed& thrown) {
                          EXPECT_STREQ(thrown.what(), "none\nleft");
                          EXPECT_EQ(rehearsal::error_of(thrown)->worker, "b");
                        });
  expect_thrown<OutOfStock>([&] { return a().calls.rpc_sync("b", &relay_future, "stock"); },
                            [](const OutOfStock& thrown) { EXPECT_EQ(thrown.left, 3); });
}

TEST_F(ExceptionTest, TheClosestRegisteredTypeIsChosenInEitherOrderOfRegistration) {
  // Goal: the most derived type. Method: a derived type unregistered, then registered after its
  // base.
  begin();
  expect_thrown<OutOfStock>([&] { return a().calls.rpc_sync("b", &throws, "sold"); },
                            [](const OutOfStock& thrown) {
                              EXPECT_STREQ(thrown.what(), "all sold");
                              EXPECT_NE(rehearsal::error_of(thrown)->type.find("SoldOut"),
                                        std::string::npos);
                            });
  ExceptionTypes types;
  types.add<std::logic_error>("logic");
  types.add<std::out_of_range>("range");
  types.add<std::runtime_error>("runtime");
  types.add<std::invalid_argument>("argument");
  EXPECT_EQ(types.find(std::out_of_range("x"))->name, "range");
  EXPECT_EQ(types.find(std::invalid_argument("x"))->name, "argument");
  EXPECT_EQ(types.find(std::domain_error("x"))->name, "logic");
  EXPECT_EQ(types.find(std::overflow_error("x"))->name, "runtime");
  EXPECT_EQ(types.find(std::bad_alloc()), nullptr);
  EXPECT_EQ(types.at(1)->name, "range");
  EXPECT_EQ(types.at(4), nullptr);
  EXPECT_EQ(
      types.describe(),
      "exception logic ()\nexception range ()\nexception runtime ()\nexception argument ()\n");
}

TEST_F(ExceptionTest, TypesAreMadeFromATextOrFromNothingAndNeverCopied) {
  begin();
  expect_thrown<Closed>([&] { return a().calls.rpc_sync("b", &throws, "closed"); },
                        [](const Closed& thrown) { EXPECT_STREQ(thrown.what(), "on Sundays"); });
  expect_thrown<Numbered>([&] { return a().calls.rpc_sync("b", &throws_numbered); },
                          [](const Numbered& thrown) { EXPECT_EQ(thrown.number, 11); });
  EXPECT_THROW((void)a().calls.rpc_sync("b", &throws, "range"), std::out_of_range);
}

TEST_F(ExceptionTest, WhatIsNotRegisteredIsAnRpcErrorThatNamesItsType) {
  begin();
  const Error logic = error_of([&] { return a().calls.rpc_sync("b", &throws, "logic"); });
  EXPECT_EQ(logic.type, "std::logic_error");
  EXPECT_EQ(to_string(logic), "remote_exception at 'b' in throws: std::logic_error: plain");
  const Error number = error_of([&] { return a().calls.rpc_sync("b", &throws, "number"); });
  EXPECT_EQ(number.type, "int");
  EXPECT_EQ(number.text, "exception of type int");
  const Error torch = error_of([&] { return a().calls.rpc_sync("b", &throws, "torch"); });
  EXPECT_EQ(torch.type, "c10::Error");
  EXPECT_EQ(torch.text, "c10::Error: no such shape");
  EXPECT_EQ(torch.trace, "");
}

TEST_F(ExceptionTest, WhatCannotBeSentOrMadeIsAnRpcErrorThatSaysWhy) {
  begin();
  const Error unsent = error_of([&] { return a().calls.rpc_sync("b", &throws, "unsendable"); });
  EXPECT_EQ(unsent.kind, ErrorKind::remote_exception);
  EXPECT_NE(unsent.text.find(": none (the OutOfStock itself could not be sent: "),
            std::string::npos);
  EXPECT_NE(unsent.text.find("a tensor on meta has no elements that could be sent"),
            std::string::npos);
  EXPECT_THROW((void)a().calls.rpc_sync("b", &throws_fragile, "fine"), Fragile);
  const Error unmade = error_of([&] { return a().calls.rpc_sync("b", &throws_fragile, "breaks"); });
  EXPECT_EQ(unmade.kind, ErrorKind::remote_exception);
  EXPECT_NE(unmade.text.find("breaks (the Fragile itself could not be made here: "
                             "std::domain_error: it cannot be made)"),
            std::string::npos);
  EXPECT_EQ(a().calls.rpc_sync("b", &throws, "fine"), 1);
}

TEST_F(ExceptionTest, AnAnswerWithATypeThatNobodyKnowsIsAnRpcError) {
  // Goal: bytes from a peer never crash. Method: a response is given to the caller by hand.
  begin();
  for (const uint32_t position : {1u, 5u, 6u, UINT32_MAX}) {
    const Future<int64_t> future = a().calls.rpc_async("b", &throws, "fine");
    a().runtime->post([&] {
      Response response{.id = CallId{future.state()->source()},
                        .value = {},
                        .error = Error{.kind = ErrorKind::remote_exception, .text = "odd"},
                        .autograd = {},
                        .exception = position};
      response.value.values = "\xff";
      a().pending.on_response(WorkerId{1}, std::move(response));
    });
    EXPECT_EQ(error_of([&] { return future.wait(); }).kind, ErrorKind::remote_exception);
  }
  EXPECT_EQ(a().trace.marked("an exception came of a type that is not registered"), 2u);
}

TEST_F(ExceptionTest, AStreamEndsWithItsOwnType) {
  begin();
  Stream<int64_t> stream = a().calls.rpc_stream("b", &throws_at_last, "stock");
  EXPECT_EQ(stream.next(), 1);
  expect_thrown<OutOfStock>([&] { return stream.next(); },
                            [](const OutOfStock& thrown) {
                              EXPECT_STREQ(thrown.what(), "none\nleft");
                              EXPECT_EQ(thrown.left, 3);
                              EXPECT_TRUE(at::equal(thrown.sample, at::arange(3)));
                            });
  Stream<int64_t> plain = a().calls.rpc_stream("b", &throws_at_last, "logic");
  EXPECT_EQ(plain.next(), 1);
  expect_thrown<RpcError>(
      [&] { return plain.next(); },
      [](const RpcError& thrown) { EXPECT_EQ(thrown.kind(), ErrorKind::remote_exception); });
  // Its tensor cannot be sent: then it comes as text.
  Stream<int64_t> unsendable = a().calls.rpc_stream("b", &throws_at_last, "unsendable");
  EXPECT_EQ(unsendable.next(), 1);
  EXPECT_THROW((void)unsendable.next(), RpcError);
}

TEST_F(ExceptionTest, TakenNamesAndTypesAreRefusedAndTheRestIsDescribed) {
  EXPECT_THROW(registry.exception<OutOfStock>("Another"), std::invalid_argument);
  EXPECT_THROW(registry.exception<std::logic_error>("Closed"), std::invalid_argument);
  EXPECT_NE(registry.describe().find("exception OutOfStock (bytes,int64,Tensor,)\n"
                                     "exception Closed ()\nexception Numbered (int64,)\n"),
            std::string::npos);
  static_assert(!ThrowableType<SoldOut>);        // final
  static_assert(!ThrowableType<RpcError>);       // travels already
  static_assert(!ThrowableType<int>);            // no std::exception
  static_assert(!ThrowableType<std::bad_cast>);  // neither a text nor fields
  begin();
}

class TraceTest : public ExceptionTest {
 protected:
  void SetUp() override {
    exception_traces = true;
    ExceptionTest::SetUp();
    begin();
  }
};

TEST_F(TraceTest, OnRequestAnErrorSaysWhichFunctionsItPassedAndWhereLibTorchThrewIt) {
  const Error plain = error_of([&] { return a().calls.rpc_sync("b", &relay, "logic"); });
  EXPECT_EQ(plain.trace, "at c: throws\nat b: relay\n");
  expect_thrown<OutOfStock>([&] { return a().calls.rpc_sync("b", &relay, "stock"); },
                            [](const OutOfStock& thrown) {
                              EXPECT_EQ(rehearsal::error_of(thrown)->trace,
                                        "at c: throws\nat b: relay\n");
                            });
  const Error torch = error_of([&] { return a().calls.rpc_sync("b", &relay, "torch"); });
  EXPECT_TRUE(torch.trace.starts_with("Exception raised from throws at ")) << torch.trace;
  EXPECT_TRUE(torch.trace.ends_with("\nat c: throws\nat b: relay\n")) << torch.trace;
  EXPECT_EQ(torch.text, "c10::Error: no such shape");
}

}  // namespace
}  // namespace rehearsal
