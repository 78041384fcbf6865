// Goal: peers call the operators that are allowed, and the functions and types that they may call;
// whatever else they ask for is refused by name, and everybody serves on. Method: rows of PyTorch's
// table have none of this; each attack once, in both worlds.
#include <ATen/ATen.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/reference/row.h"
#include "tests/temporary_folder.h"

namespace rehearsal::reference::allowed_calls_test {
namespace {

using Numbers = std::vector<int64_t>;

int64_t number(int64_t given) { return given; }
int64_t reset() { return 1; }
int64_t reset_at(CallContext& context, const std::string& to) {
  return context.rpc_sync(to, &reset);
}
void numbers(StreamWriter<int64_t>& out) { out.write(1); }

struct Table {
  explicit Table(int64_t number) : rows(number) {}
  Table() = default;
  int64_t size() const { return rows; }
  int64_t clear() { return rows = 0; }
  int64_t rows = 0;
  friend void describe(Table& value, auto&& fields) { fields(value.rows); }
};

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("number", &number);
  return registry;
}

void expect_served(Worker& worker, const std::string& to) {
  EXPECT_EQ(worker.rpc_sync(to, &number, 3), 3);
}

// The text of the refusal, by a callee that goes on.
template <class... A>
std::string refused(Worker& worker, ErrorKind kind, const std::string& name, const A&... given) {
  const std::string to = after(worker);
  const Error error = error_of([&] { (void)worker.rpc_sync<c10::IValue>(to, name, given...); });
  EXPECT_EQ(error.kind, kind) << to_string(error);
  EXPECT_EQ(error.worker, to);
  EXPECT_EQ(error.function, name);
  expect_served(worker, to);
  return error.text;
}

template <class... A>
void expect_not_allowed(Worker& worker, const std::string& name, const A&... given) {
  EXPECT_EQ(refused(worker, ErrorKind::unknown_function, name, given...),
            "the operator '" + name +
                "' may not be called by name here: allow it with registry.operators({\"" + name +
                "\"}), or call it in a registered function");
}

TEST(ReferenceAllowedCalls, NoOperatorReadsOrMakesAFile) {
  const TemporaryFolder folder;
  const std::string made = folder.file("made");
  in_both_worlds(everywhere(functions(), [&](Worker& worker) {
    expect_not_allowed(worker, "aten::from_file", std::string("/etc/hostname"), false, 4,
                       kwarg("dtype", static_cast<int64_t>(at::kByte)));
    expect_not_allowed(worker, "aten::from_file", made, true, 4);
    EXPECT_FALSE(std::filesystem::exists(made));
  }));
}

TEST(ReferenceAllowedCalls, NoOperatorShowsMemoryThatNobodyWrote) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    expect_not_allowed(worker, "aten::empty", Numbers{1000});
    expect_not_allowed(worker, "aten::empty.memory_format", Numbers{1000});
    expect_not_allowed(worker, "aten::_reshape_alias", at::ones(1), Numbers{1000}, Numbers{1});
    expect_not_allowed(worker, "aten::as_strided", at::ones(1), Numbers{1}, Numbers{1}, 1000);
  }));
}

TEST(ReferenceAllowedCalls, NoOperatorEndsTheProcess) {
  in_both_worlds(everywhere(functions(), [](Worker& worker) {
    const at::Tensor x = at::ones({2, 3});
    const at::Tensor far = at::full({2}, int64_t{1} << 40);
    expect_not_allowed(worker, "inductor::_reinterpret_tensor", x, Numbers{1000}, Numbers{1}, 0);
    expect_not_allowed(worker, "aten::embedding_dense_backward", x, far, 4, -1, false);
    expect_not_allowed(worker, "aten::segment_reduce", x, std::string("max"),
                       kwarg("lengths", far));
    for (const int64_t dtype : {999, -1, static_cast<int>(c10::ScalarType::Undefined)})
      EXPECT_TRUE(contains(refused(worker, ErrorKind::bad_arguments, "aten::ones", Numbers{2},
                                   kwarg("dtype", dtype)),
                           "is no number of a c10::ScalarType"));
    EXPECT_TRUE(contains(
        refused(worker, ErrorKind::bad_arguments, "aten::ones", Numbers{2}, kwarg("layout", 77)),
        "is no number of a c10::Layout"));
    EXPECT_TRUE(contains(
        refused(worker, ErrorKind::bad_arguments, "aten::clone", x, kwarg("memory_format", -3)),
        "is no number of a c10::MemoryFormat"));
  }));
}

TEST(ReferenceAllowedCalls, NoOperatorTakesMoreMemoryThanItMay) {
  in_both_worlds(everywhere(functions().operator_memory_max(1 << 20), [](Worker& worker) {
    const int64_t far = int64_t{1} << 37;
    for (const std::string& text :
         {refused(worker, ErrorKind::bad_arguments, "aten::ones", Numbers{far}),
          refused(worker, ErrorKind::bad_arguments, "aten::expand", at::ones(1), Numbers{far}),
          refused(worker, ErrorKind::bad_arguments, "aten::arange", far),
          refused(worker, ErrorKind::bad_arguments, "aten::ones", Numbers{(1 << 18) + 1})})
      EXPECT_TRUE(contains(text, "all of its tensors may take 1048576")) << text;
    EXPECT_EQ(worker.rpc_sync<at::Tensor>(after(worker), "aten::ones", Numbers{1 << 18}).numel(),
              1 << 18);
  }));
}

TEST(ReferenceAllowedCalls, AProgramAllowsMore) {
  FunctionRegistry registry = functions();
  registry.operators({"aten::empty", "aten::add_.Tensor"});
  in_both_worlds(everywhere(registry, [](Worker& worker) {
    const std::string to = after(worker);
    EXPECT_EQ(worker.rpc_sync<at::Tensor>(to, "aten::empty", Numbers{5}).numel(), 5);
    EXPECT_TRUE(
        at::equal(worker.rpc_sync<at::Tensor>(to, "aten::add_.Tensor", at::ones(2), at::ones(2)),
                  at::full({2}, 2.0)));
    expect_not_allowed(worker, "aten::empty_like", at::ones(2));
    expect_not_allowed(worker, "aten::add_.Scalar", at::ones(2), 1);
  }));
}

// ---- callers ------------------------------------------------------------------

FunctionRegistry guarded_functions() {
  FunctionRegistry registry = functions();
  registry.function("reset", &reset).callable_by({"master"});
  registry.function("reset_at", &reset_at);
  registry.function("numbers", &numbers).callable_by({"master", "trainer1"});
  registry.type<Table>("Table")
      .callable_by({"trainer"})
      .constructor<int64_t>()
      .method("size", &Table::size)
      .method("clear", &Table::clear)
      .callable_by({"master"});
  registry.operators_callable_by({"trainer"});
  return registry;
}

template <class F>
void expect_kept_out(const Worker& worker, const std::string& function, const std::string& by,
                     F body) {
  const Error error = error_of(body);
  EXPECT_EQ(error.kind, ErrorKind::unknown_function);
  EXPECT_EQ(error.worker, "ps");
  EXPECT_EQ(error.function, function);
  EXPECT_EQ(error.text,
            "'" + worker.name() + "' may not call '" + function + "': it is callable by " + by);
}

void trainer(Worker& worker) {
  RRef<Table> table = worker.remote<Table>("ps", 7);
  EXPECT_EQ(table.rpc_sync(&Table::size), 7);
  EXPECT_EQ(table.to_here().rows, 7);
  expect_kept_out(worker, "Table.clear", "'master'", [&] { (void)table.rpc_sync(&Table::clear); });
  expect_kept_out(worker, "reset", "'master'", [&] { (void)worker.rpc_sync("ps", &reset); });
  expect_kept_out(worker, "reset", "'master'",
                  [&] { (void)worker.rpc_sync<int64_t>("ps", "reset"); });
  EXPECT_TRUE(worker.rpc_sync<at::Tensor>("ps", "aten::neg", at::ones(1)).defined());
  if (worker.name() == "trainer1")
    EXPECT_EQ(worker.rpc_stream("ps", &numbers).next(), 1);
  else
    expect_kept_out(worker, "numbers", "'master', 'trainer1'",
                    [&] { (void)worker.rpc_stream("ps", &numbers).next(); });
  // The master may, and is asked to.
  EXPECT_EQ(worker.rpc_sync("master", &reset_at, std::string("ps")), 1);
  EXPECT_EQ(worker.rpc_sync("ps", &number, 3), 3);
}

void master(Worker& worker) {
  EXPECT_EQ(worker.rpc_sync("ps", &reset), 1);
  expect_kept_out(worker, "Table(int64,)", "'trainer'",
                  [&] { (void)worker.remote<Table>("ps", 7).to_here(); });
  expect_kept_out(worker, "aten::neg", "'trainer'",
                  [&] { (void)worker.rpc_sync<at::Tensor>("ps", "aten::neg", at::ones(1)); });
  // A trainer that is asked to is still none who may.
  const Error error =
      error_of([&] { (void)worker.rpc_sync("trainer0", &reset_at, std::string("ps")); });
  EXPECT_EQ(error.text, "'trainer0' may not call 'reset': it is callable by 'master'");
  EXPECT_EQ(worker.rpc_sync("ps", &number, 3), 3);
}

TEST(ReferenceAllowedCalls, FunctionsAndTypesAreUsedByThoseWhoMay) {
  Program program(guarded_functions());
  program.worker("ps").worker("master", &master).worker("trainer", &trainer, Count{2});
  in_both_worlds(program);
}

}  // namespace
}  // namespace rehearsal::reference::allowed_calls_test
