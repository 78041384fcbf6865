#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

int64_t reset(int64_t number) { return number; }
int64_t anybody(int64_t number) { return number; }
int64_t by_way_of(CallContext& context, const std::string& worker) {
  return context.rpc_sync(worker, &reset, 1);
}
void count_up(StreamWriter<int64_t>& out, int64_t number) {
  for (int64_t i = 0; i < number; ++i) out.write(i);
}
struct Table {
  explicit Table(int64_t number) : rows(number) {}
  int64_t size() const { return rows; }
  int64_t clear() { return rows = 0; }
  int64_t rows = 0;
  Table() = default;
  friend void describe(Table& value, auto&& fields) { fields(value.rows); }
};
Table make_table() { return Table(7); }

// c is kept out of nearly all of b.
class CallersTest : public CallFixture {
 protected:
  void SetUp() override {
    registry.function("anybody", &anybody).function("through", &by_way_of);
    registry.function("reset", &reset).callable_by({"a"}).runs_inline();
    registry.function("count_up", &count_up).callable_by({"a"});
    registry.function("make_table", &make_table);
    registry.script("lib", "def f(x):\n  return x\n").callable_by({"a"});
    registry.type<Table>("Table")
        .callable_by({"a"})
        .constructor<int64_t>()
        .method("size", &Table::size)
        .method("clear", &Table::clear)
        .callable_by({"b"});
    registry.operators_callable_by({"a"});
    begin();
  }

  template <class F>
  void expect_kept_out(const std::string& caller, const std::string& function,
                       const std::string& by, F body) {
    const uint64_t executed = b().trace.count(EventKind::call_executed);
    const Error error = error_of(body);
    EXPECT_EQ(error.kind, ErrorKind::unknown_function);
    EXPECT_EQ(error.worker, "b");
    EXPECT_EQ(error.function, function);
    EXPECT_EQ(error.text,
              "'" + caller + "' may not call '" + function + "': it is callable by " + by);
    EXPECT_EQ(b().trace.count(EventKind::call_executed), executed);
  }
};

TEST_F(CallersTest, AFunctionIsCalledByThoseWhoMay) {
  EXPECT_EQ(a().calls.rpc_sync("b", &reset, 3), 3);
  EXPECT_EQ(c().calls.rpc_sync("b", &anybody, 3), 3);
  expect_kept_out("c", "reset", "'a'", [&] { return c().calls.rpc_sync("b", &reset, 3); });
  expect_kept_out("c", "reset", "'a'",
                  [&] { return c().calls.rpc_sync<int64_t>("b", "reset", 3); });
  expect_kept_out("c", "reset", "'a'", [&] { return c().calls.rpc_async("b", &reset, 3).wait(); });
  expect_kept_out("c", "reset", "'a'", [&] { return c().calls.remote("b", &reset, 3).to_here(); });
}

TEST_F(CallersTest, ARuleHoldsForTheWorkersOwnCallsToo) {
  expect_kept_out("b", "reset", "'a'", [&] { return b().calls.rpc_sync("b", &reset, 3); });
}

TEST_F(CallersTest, WhoCallsThroughAnotherIsThatOther) {
  // Goal: the caller is the worker next to the callee, in both directions.
  EXPECT_EQ(c().calls.rpc_sync("a", &by_way_of, std::string("b")), 1);
  const Error error =
      error_of([&] { return a().calls.rpc_sync("c", &by_way_of, std::string("b")); });
  EXPECT_EQ(error.text, "'c' may not call 'reset': it is callable by 'a'");
  EXPECT_EQ(error.chain, std::vector<std::string>{"c"});
}

TEST_F(CallersTest, NothingThatACallSaysMakesItsCallerAnother) {
  // Goal: no id of another worker's life, depth or place helps. Method: forged by c.
  // Its own life comes first: a call in the name of another ends the link.
  for (const Incarnation life : {c().incarnation(), a().incarnation(), b().incarnation()}) {
    Draft draft = function_draft(*c().caller, "b", &reset, 1);
    draft.call.id.incarnation = life;
    draft.call.depth = 7;
    c().runtime->post([&] { c().sessions.send(WorkerId{1}, Message{std::move(draft.call)}); });
    settle();
  }
  EXPECT_EQ(b().trace.count(EventKind::call_executed), 0u);
  EXPECT_EQ(b().served.size(), 0u);
}

TEST_F(CallersTest, AStreamIsOfferedToThoseWhoMay) {
  auto stream = a().calls.rpc_stream("b", &count_up, 2);
  EXPECT_EQ(stream.next(), 0);
  EXPECT_EQ(stream.next(), 1);
  EXPECT_FALSE(stream.next());
  expect_kept_out("c", "count_up", "'a'",
                  [&] { return c().calls.rpc_stream("b", &count_up, 2).next(); });
}

TEST_F(CallersTest, OperatorsAndScriptsAreCalledByThoseWhoMay) {
  EXPECT_TRUE(a().calls.rpc_sync<at::Tensor>("b", "aten::neg", at::ones(1)).defined());
  EXPECT_TRUE(a().calls.rpc_sync<at::Tensor>("b", "script::lib.f", at::ones(1)).defined());
  for (const std::string name : {"aten::neg", "aten::empty_like", "script::lib.f"})
    expect_kept_out("c", name, "'a'",
                    [&] { return c().calls.rpc_sync<at::Tensor>("b", name, at::ones(1)); });
}

TEST_F(CallersTest, ATypeIsMadeAndUsedByThoseWhoMay) {
  // Goal: to make a value, to call its methods, to have a copy; though the reference was given
  // away.
  RRef<Table> table = a().calls.remote<Table>("b", 7);
  EXPECT_EQ(table.rpc_sync(&Table::size), 7);
  EXPECT_EQ(table.to_here().rows, 7);
  expect_kept_out("a", "Table.clear", "'b'", [&] { return table.rpc_sync(&Table::clear); });
  expect_kept_out("c", "Table(int64,)", "'a'",
                  [&] { return c().calls.remote<Table>("b", 7).to_here(); });
  const RRef<Table> given = c().calls.remote("b", &make_table);
  given.created().wait();
  expect_kept_out("c", "Table.size", "'a'", [&] { return given.rpc_sync(&Table::size); });
  expect_kept_out("c", "Table.to_here", "'a'", [&] { return given.to_here(); });
}

TEST_F(CallersTest, WhoIsKeptOutHarmsNobody) {
  // Goal: the arguments of a refused call are given up, references among them.
  const RRef<Table> table = c().calls.remote("b", &make_table);
  table.created().wait();
  for (int i = 0; i < 20; ++i) (void)error_of([&] { return table.rpc_sync(&Table::clear); });
  EXPECT_EQ(b().served.size(), 0u);
  EXPECT_EQ(a().calls.rpc_sync("b", &reset, 3), 3);
}

}  // namespace
}  // namespace rehearsal
