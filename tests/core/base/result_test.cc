#include "core/base/result.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "core/base/user_code.h"

namespace rehearsal {
namespace {

Error refused() {
  return {.kind = ErrorKind::overloaded,
          .text = "too much",
          .worker = "ps",
          .function = "add",
          .chain = {"a", "b"}};
}

TEST(Result, HoldsAValueOrAnError) {
  Result<std::string> good(std::string("text"));
  ASSERT_TRUE(good.ok());
  EXPECT_TRUE(static_cast<bool>(good));
  EXPECT_EQ(good.value(), "text");
  const Result<std::string> bad(refused());
  ASSERT_FALSE(bad.ok());
  EXPECT_EQ(bad.error(), refused());
}

TEST(Result, GivesItsValueAway) {
  // Move-only values leave by value() && and by or_throw() &&.
  Result<std::unique_ptr<int>> first(std::make_unique<int>(1));
  EXPECT_EQ(*std::move(first).value(), 1);
  Result<std::unique_ptr<int>> second(std::make_unique<int>(2));
  EXPECT_EQ(*std::move(second).or_throw(), 2);
}

TEST(Result, ThrowsItsErrorAsRpcError) {
  try {
    (void)Result<int>(refused()).or_throw();
    FAIL();
  } catch (const RpcError& thrown) {
    EXPECT_EQ(thrown.error(), refused());
    EXPECT_EQ(thrown.kind(), ErrorKind::overloaded);
    EXPECT_STREQ(thrown.what(), "overloaded at 'ps' in add: too much [through a b]");
  }
}

TEST(ResultDeathTest, AskingAnErrorForItsValueIsABug) {
  Result<int> bad(refused());
  EXPECT_DEATH((void)bad.value(), "check failed: ok\\(\\) with too much");
}

TEST(ResultDeathTest, AskingAValueForItsErrorIsABug) {
  Result<int> good(1);
  EXPECT_DEATH((void)good.error(), "check failed: !ok\\(\\)");
}

TEST(Result, ACopyHasAnErrorOfItsOwn) {
  Result<int> bad(refused());
  Result<int> copy = bad;
  copy.error().text = "changed";
  EXPECT_EQ(bad.error(), refused());
  bad = Result<int>(1);
  EXPECT_EQ(bad.value(), 1);
  EXPECT_EQ(copy.error().text, "changed");
}

TEST(MaybeError, IsEmptyUntilItIsGivenOne) {
  MaybeError error;
  EXPECT_FALSE(error);
  error = refused();
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(*error, refused());
  EXPECT_EQ(error->text, "too much");
  error.reset();
  EXPECT_FALSE(error);
}

TEST(MaybeError, CopiesAndHandsOnWhatItHolds) {
  const MaybeError first = refused();
  MaybeError second = first;
  second->text = "changed";
  EXPECT_EQ(first->text, "too much");
  MaybeError third = std::move(second);
  EXPECT_EQ(third->text, "changed");
  MaybeError& itself = third;
  third = itself;
  EXPECT_EQ(third->text, "changed");
  third = first;
  EXPECT_EQ(*third, refused());
}

TEST(Error, EveryKindHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(kLastErrorKind); ++kind)
    names.insert(name_of(static_cast<ErrorKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kLastErrorKind) + 1);
  EXPECT_TRUE(names.contains("rref_deleted"));
}

TEST(Error, SaysOnlyWhatIsKnown) {
  EXPECT_EQ(to_string(Error{.kind = ErrorKind::timeout, .text = "late"}), "timeout: late");
  EXPECT_EQ(to_string(Error{.kind = ErrorKind::timeout, .text = "late", .function = "f"}),
            "timeout in f: late");
}

template <class Thrown>
Error error_of(Thrown thrown) {
  return run_user_code("worker7", "fn", [&]() -> int { throw thrown; }).error();
}

struct Odd {};

TEST(UserCode, AnExceptionBecomesARemoteExceptionThatNamesIt) {
  const Error error = error_of(std::out_of_range("beyond"));
  EXPECT_EQ(error.kind, ErrorKind::remote_exception);
  EXPECT_EQ(error.worker, "worker7");
  EXPECT_EQ(error.function, "fn");
  EXPECT_EQ(error.text, "std::out_of_range: beyond");
  EXPECT_TRUE(error.chain.empty());
}

TEST(UserCode, AnythingThrownIsCaught) {
  EXPECT_EQ(error_of(42).text, "exception of type int");
  EXPECT_NE(error_of(Odd{}).text.find("Odd"), std::string::npos);
}

TEST(UserCode, AnErrorNamesTheTypeOfWhatWasThrown) {
  EXPECT_EQ(error_of(std::out_of_range("beyond")).type, "std::out_of_range");
  EXPECT_EQ(error_of(42).type, "int");
  EXPECT_EQ(error_of(RpcError(refused())).type, "");
  EXPECT_EQ(error_of(std::out_of_range("two\nlines")).text, "std::out_of_range: two\nlines");
}

TEST(UserCode, OnlyWhatCameFromACallHasAnError) {
  const RpcError from_call(refused());
  ASSERT_NE(rehearsal::error_of(from_call), nullptr);
  EXPECT_EQ(*rehearsal::error_of(from_call), refused());
  EXPECT_EQ(rehearsal::error_of(std::out_of_range("beyond")), nullptr);
}

// Knows an exception of one type only.
struct KnowsOutOfRange final : ExceptionHook {
  struct Carried final : CarriedException {
    std::exception_ptr made_for(const Error& error) const override {
      return std::make_exception_ptr(std::out_of_range("again: " + error.text));
    }
  };
  void complete(Error& error, const std::exception& thrown, std::string_view) const override {
    if (dynamic_cast<const std::out_of_range*>(&thrown) != nullptr)
      error.exception = std::make_shared<Carried>();
  }
};

TEST(UserCode, ACarriedExceptionIsThrownInPlaceOfAnRpcError) {
  // Goal: by whoever throws the error of a result, and not carried on without a hook.
  const KnowsOutOfRange hook;
  const auto fails = []() -> int { throw std::out_of_range("beyond"); };
  Result<int> failed = run_user_code("w", "f", fails, &hook);
  EXPECT_THROW(throw_error(failed.error()), std::out_of_range);
  const RpcError around(failed.error());
  EXPECT_EQ(error_of(around).exception, nullptr);
  EXPECT_THROW((void)std::move(failed).or_throw(), std::out_of_range);
  EXPECT_THROW((void)run_user_code("w", "f", fails).or_throw(), RpcError);
}

TEST(UserCode, AnRpcErrorKeepsItsKindAndGainsALinkOfItsChain) {
  Error expected = refused();
  expected.chain.push_back("worker7");
  EXPECT_EQ(error_of(RpcError(refused())), expected);
}

TEST(UserCode, TheEndOfTheNodePassesThrough) {
  EXPECT_THROW((void)error_of(NodeKilled{}), NodeKilled);
}

TEST(UserCode, NothingIsAUnitAndAReferenceIsAValue) {
  EXPECT_EQ(run_user_code("w", "f", [] {}).value(), Unit{});
  const std::string text = "kept";
  Result<std::string> copy = run_user_code("w", "f", [&]() -> const std::string& { return text; });
  EXPECT_EQ(copy.value(), "kept");
}

}  // namespace
}  // namespace rehearsal
