// The files of a checkpoint, as Python's torch.load(file, weights_only=True) reads them: that
// refuses a file which names anything but tensors.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <torch/serialize.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "core/checkpoint/plain_pickle.h"
#include "tests/core/checkpoint/small_training.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::testing {
namespace {

using nlohmann::json;

// LibTorch's wheel is the whole package of Python.
const std::filesystem::path kPackage = REHEARSAL_LIBTORCH_FOLDER;

bool has_python() { return std::filesystem::exists(kPackage / "_weights_only_unpickler.py"); }

// The value that Python reads; or, as a text, why it refuses.
json read_by_python(const std::string& bytes) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("file.pt")) << bytes;
  const std::string command = "python3 tests/core/checkpoint/as_python_reads.py '" +
                              kPackage.string() + "' '" + folder.file("file.pt") + "' >'" +
                              folder.file("out") + "' 2>'" + folder.file("err") + "'";
  if (std::system(command.c_str()) != 0) return read_whole_file(folder.file("err"));
  return json::parse(read_whole_file(folder.file("out")));
}

json tensor_of(const char* type, const json& sizes, const json& values) {
  return {{"tensor", type}, {"sizes", sizes}, {"values", values}};
}

TEST(PythonFiles, HaveEveryKindOfValue) {
  // Goal: a file of ours is one of Python's, with the same values. Method: one of each kind.
  if (!has_python()) GTEST_SKIP() << "this LibTorch comes without Python's part";
  c10::impl::GenericDict value(c10::StringType::get(), c10::AnyType::get());
  value.insert("number", int64_t{1} << 40);
  value.insert("real", 0.5);
  value.insert("flag", true);
  value.insert("nothing", c10::IValue());
  value.insert("text", "naïve");
  value.insert("list", c10::impl::toList(c10::List<int64_t>({1, 2})));
  value.insert("pair", c10::ivalue::Tuple::create({int64_t{3}, "four"}));
  value.insert("float", at::tensor({1.5F, -2.F, 0.F, 4.F}).view({2, 2}));
  value.insert("turned", at::tensor({1.F, 2.F, 3.F, 4.F}).view({2, 2}).t());
  value.insert("double", at::tensor({0.1}, at::kDouble));
  value.insert("long", at::tensor({int64_t{7}}, at::kLong));
  value.insert("half", at::tensor({0.25F}).to(at::kHalf));
  value.insert("scalar", at::tensor(3.F).squeeze());
  value.insert("empty", at::empty({0, 3}));
  const json expected = {{"number", int64_t{1} << 40},
                         {"real", 0.5},
                         {"flag", true},
                         {"nothing", nullptr},
                         {"text", "naïve"},
                         {"list", {1, 2}},
                         {"pair", {3, "four"}},
                         {"float", tensor_of("Float", {2, 2}, {1.5, -2, 0, 4})},
                         {"turned", tensor_of("Float", {2, 2}, {1, 3, 2, 4})},
                         {"double", tensor_of("Double", {1}, {0.1})},
                         {"long", tensor_of("Long", {1}, {7})},
                         {"half", tensor_of("Half", {1}, {0.25})},
                         {"scalar", tensor_of("Float", json::array(), {3})},
                         {"empty", tensor_of("Float", {0, 3}, json::array())}};
  EXPECT_EQ(read_by_python(plain_pickle(value)), expected);
}

TEST(PythonFiles, ThatNameMoreAreRefused) {
  // Goal: the reader of this test is as strict as Python's. Method: LibTorch's own file of a
  // dictionary, which names the function that restores its type.
  if (!has_python()) GTEST_SKIP() << "this LibTorch comes without Python's part";
  c10::Dict<std::string, int64_t> typed;
  typed.insert("number", 7);
  const std::vector<char> bytes = torch::pickle_save(typed);
  const json why = read_by_python({bytes.begin(), bytes.end()});
  ASSERT_TRUE(why.is_string());
  EXPECT_NE(why.get<std::string>().find("torch.jit._pickle.restore_type_tag"), std::string::npos)
      << why;
}

TEST(PythonFiles, OfACutHaveItsPiecesByName) {
  // Goal: what the README shows. Method: a training's parts, as their owners have saved them.
  if (!has_python()) GTEST_SKIP() << "this LibTorch comes without Python's part";
  TrainingEnd end;
  Program program(training_registry());
  json part;
  json head;
  program.worker("trainer", training_main({.steps = 2}, end)).recovering();
  program
      .worker("first",
              [&](Worker& worker) {
                for (int waits = 0; !worker.load_checkpoint("small.0"); ++waits) {
                  ASSERT_LT(waits, 1000);
                  worker.sleep(std::chrono::milliseconds(10));
                }
                part = read_by_python(plain_pickle(*worker.load_checkpoint("small.0")));
                head = read_by_python(plain_pickle(*worker.load_checkpoint("small.head")));
              })
      .recovering();
  program.worker("second").recovering();
  sim::Cluster(Seed{11}, program).run();
  ASSERT_TRUE(part.is_object()) << part;
  EXPECT_EQ(part.at("step"), 2);
  EXPECT_EQ(part.at("holders"), json({"trainer", "first", "second"}));
  const json& weight = part.at("pieces").at("first.linear.weight");
  EXPECT_EQ(weight.at("sizes"), json({4, 5}));
  EXPECT_EQ(weight.at("values").size(), 20u);
  EXPECT_TRUE(part.at("pieces").contains("first.norm.running_mean"));
  ASSERT_TRUE(head.is_object()) << head;
  EXPECT_EQ(head.at("format"), 1);
  EXPECT_EQ(head.at("slots").at(0).at("step"), 2);
}

}  // namespace
}  // namespace rehearsal::testing
