// Files of checkpoints that somebody has made to harm the worker that reads them. Each is refused
// in one line, before LibTorch's reader sees it, and takes no more memory than it is large.
#include <ATen/Functions.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/checkpoint/kept_pieces.h"
#include "core/checkpoint/plain_pickle.h"
#include "tests/core/checkpoint/small_training.h"
#include "tests/held_bytes.h"

namespace rehearsal::testing {
namespace {

using namespace std::string_literals;
using NamedRecords = std::vector<std::pair<std::string, std::string>>;

// ---- files by hand -----------------------------------------------------------------

// An archive with this pickle, without its first opcode, and other records.
std::string hand_made(const std::string& opcodes, const NamedRecords& records = {},
                      bool compressed = false) {
  std::string file;
  caffe2::serialize::PyTorchStreamWriter writer([&file](const void* bytes, size_t count) {
    file.append(static_cast<const char*>(bytes), count);
    return count;
  });
  const std::string pickle = "\x80\x02"s + opcodes;
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  for (const auto& [name, bytes] : records)
    writer.writeRecord(name, bytes.data(), bytes.size(), compressed);
  writer.writeEndOfFile();
  return file;
}

std::string repeated(const std::string& opcodes, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += opcodes;
  return all;
}

// A number of four bytes, as opcodes carry it.
std::string four_bytes(uint32_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

std::string pushed_number(int64_t number) {
  return "\x8a\x08"s + std::string(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string pushed_text(const std::string& characters) {
  return "X" + four_bytes(static_cast<uint32_t>(characters.size())) + characters;
}

std::string pushed_sizes(const std::vector<int64_t>& numbers) {
  std::string opcodes = "(";
  for (const int64_t number : numbers) opcodes += pushed_number(number);
  return opcodes + "t";
}

// The tuple that names a storage of so many elements in a record.
std::string storage_tuple(const std::string& record, const std::string& type, int64_t elements) {
  return "(" + pushed_text("storage") + "ctorch\n" + type + "Storage\n" + pushed_text(record) +
         pushed_text("cpu") + pushed_number(elements) + "t";
}

// A tensor over it.
std::string strided_tensor(const std::string& storage, int64_t offset,
                           const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + "Q" + pushed_number(offset) +
         pushed_sizes(sizes) + pushed_sizes(strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

std::string sparse_tensor(const std::string& indices, const std::string& values, int64_t size) {
  return "ctorch._utils\n_rebuild_sparse_tensor\n(K\x01" + pushed_sizes({size}) + "\x89" + indices +
         values + "ccollections\nOrderedDict\n)RtR";
}

// The line that refuses these bytes; empty: they are read.
std::string why_refused(const std::string& bytes) {
  try {
    static_cast<void>(unpickle(bytes));
    return "";
  } catch (const std::exception& error) {
    return in_one_line(error);
  }
}

// ---- values ------------------------------------------------------------------------

TEST(HostileFiles, AreMadeByHandAsThePicklerMakesThem) {
  // Goal: the others are refused for what is wrong with them only. Method: good ones of the same
  // parts.
  const std::string four(16, '\0');
  EXPECT_EQ(why_refused(hand_made("](K\x01N\x88"s + pushed_text("a") + "q\0h\0e."s)), "");
  EXPECT_EQ(why_refused(hand_made("}("s + pushed_text("a") + pushed_number(7) + "u.")), "");
  const c10::IValue tensor = unpickle(hand_made(
      strided_tensor(storage_tuple("0", "Float", 4), 0, {2, 2}, {2, 1}) + ".", {{"data/0", four}}));
  EXPECT_TRUE(at::equal(tensor.toTensor(), at::zeros({2, 2})));
  const std::string indices = strided_tensor(storage_tuple("0", "Long", 2), 0, {1, 2}, {2, 1});
  const std::string values = strided_tensor(storage_tuple("1", "Float", 2), 0, {2}, {1});
  const std::string first_and_second = std::string(8, '\0') + "\1" + std::string(7, '\0');
  const c10::IValue sparse =
      unpickle(hand_made(sparse_tensor(indices, values, 3) + ".",
                         {{"data/0", first_and_second}, {"data/1", std::string(8, '\0')}}));
  EXPECT_TRUE(at::equal(sparse.toTensor().to_dense(), at::zeros(3)));
}

TEST(HostileFiles, AreNoneOfThoseThatThePicklerWrites) {
  // Goal: nothing that can be saved is taken for hostile. Method: one value of each kind, with the
  // types of lists and dictionaries and without.
  const at::Tensor matrix = at::arange(12, at::kFloat).view({3, 4});
  c10::Dict<at::Tensor, c10::complex<double>> by_tensor;
  by_tensor.insert(matrix, c10::complex<double>(1, 2));
  c10::Dict<std::string, at::Tensor> shared;
  for (const char* name : {"one", "two"}) shared.insert(name, matrix);
  shared.insert("view", matrix.t());
  shared.insert("conjugated", at::ones(2, at::kComplexFloat).conj());
  shared.insert("spread", at::ones(1).expand({100, 3}));
  shared.insert("learned", at::ones(2).requires_grad_());
  shared.insert("coordinates", matrix.to_sparse());
  shared.insert("rows", matrix.to_sparse_csr());
  shared.insert("quantized", at::quantize_per_tensor(matrix, 0.1, 3, at::kQInt8));
  shared.insert("by channel", at::quantize_per_channel(matrix, at::ones(3).to(at::kDouble),
                                                       at::zeros(3, at::kLong), 0, at::kQInt8));
  const c10::IValue values[] = {
      int64_t{1} << 60,
      -5,
      0.5,
      c10::IValue(),
      c10::Device(c10::kCPU),
      c10::List<int64_t>({1, 2}),
      c10::List<double>(),
      c10::List<bool>({true}),
      c10::List<at::Tensor>({matrix, matrix.to_sparse()}),
      c10::List<c10::List<std::string>>({c10::List<std::string>({"a", "a"})}),
      c10::List<std::optional<int64_t>>({std::optional<int64_t>(1), std::nullopt}),
      c10::ivalue::Tuple::create(std::vector<c10::IValue>{}),
      c10::ivalue::Tuple::create({1, "x", matrix, 2.5}),
      by_tensor,
      shared};
  for (const c10::IValue& value : values) {
    const std::vector<char> bytes = torch::jit::pickle_save(value);
    EXPECT_EQ(why_refused({bytes.begin(), bytes.end()}), "") << value.tagKind();
    EXPECT_EQ(why_refused(plain_pickle(value)), "") << value.tagKind();
  }
}

TEST(HostileFiles, WhoseValuesHoldThemselvesAreRefused) {
  // Goal: whoever visits a value comes to an end. Method: a list and a dictionary that are
  // remembered before they are filled, and a list that is filled twice.
  EXPECT_EQ(why_refused(hand_made("]q\0(h\0e."s)), "its pickle remembers what is not whole");
  EXPECT_EQ(why_refused(hand_made("}q\0(Nh\0u."s)), "its pickle remembers what is not whole");
  EXPECT_EQ(why_refused(hand_made("](eq\0(h\0e."s)), "its pickle fills what is not empty");
}

TEST(HostileFiles, WhoseValuesAreNestedDeeplyAreRefused) {
  // Goal: no stack overflows where values are visited or let go. Method: a million tuples, lists
  // and dictionaries in each other; 64 are read.
  const std::string deep = "its values lie more than 64 deep in each other";
  constexpr size_t kMillion = 1'000'000;
  EXPECT_EQ(why_refused(hand_made("N" + repeated("\x85", kMillion) + ".")), deep);
  EXPECT_EQ(why_refused(hand_made(repeated("](", kMillion) + repeated("e", kMillion) + ".")), deep);
  EXPECT_EQ(
      why_refused(hand_made(repeated("}(K\x01", kMillion) + "N" + repeated("u", kMillion) + ".")),
      deep);
  EXPECT_EQ(why_refused(hand_made("N" + repeated("\x85", 64) + ".")), "");
  EXPECT_EQ(why_refused(hand_made("N" + repeated("\x85", 65) + ".")), deep);
}

TEST(HostileFiles, WhoseValuesAreSharedTooOftenAreRefused) {
  // Goal: whoever visits or copies a value has not much more to do than the file is large. Method:
  // sixty pairs, each of the one before twice; a long text, and a tensor, named a hundred thousand
  // times; a tensor of one element that claims 2^40. Two of each are read.
  const std::string often = "its values are far more than the file is large";
  std::string pairs = "](eq\0"s;
  for (char i = 0; i < 60; ++i) pairs += "h"s + i + "h"s + i + "\x86q"s + static_cast<char>(i + 1);
  EXPECT_EQ(why_refused(hand_made(pairs + ".")), often);
  const std::string long_text = pushed_text(std::string(1 << 20, 'x'));
  const std::string texts = "](" + long_text + "q\0"s;
  EXPECT_EQ(why_refused(hand_made(texts + repeated("h\0"s, 100'000) + "e.")), often);
  EXPECT_EQ(why_refused(hand_made(texts + "h\0e."s)), "");
  const NamedRecords record = {{"data/0", std::string(1 << 20, '\0')}};
  const std::string tensors =
      "](" + strided_tensor(storage_tuple("0", "Byte", 1 << 20), 0, {1 << 20}, {1}) + "q\0"s;
  EXPECT_EQ(why_refused(hand_made(tensors + repeated("h\0"s, 100'000) + "e.", record)), often);
  EXPECT_EQ(why_refused(hand_made(tensors + "h\0e."s, record)), "");
  const auto spread = [&record](int64_t size) {
    return hand_made(strided_tensor(storage_tuple("0", "Byte", 1), 0, {size}, {0}) + ".", record);
  };
  EXPECT_EQ(why_refused(spread(int64_t{1} << 40)), often);
  EXPECT_EQ(why_refused(spread(int64_t{1} << 10)), "");
}

TEST(HostileFiles, WhoseKeysCollideAreRefused) {
  // Goal: LibTorch's hash table, which doubles itself until its keys are spread, does not take all
  // memory. Method: twenty keys that are no numbers: of one hash, and none equal to another.
  const std::string not_a_number = "G\x7f\xf8"s + std::string(6, '\0') + "N";
  EXPECT_EQ(why_refused(hand_made("}(" + repeated(not_a_number, 20) + "u.")),
            "it has a dictionary whose keys collide");
  c10::Dict<std::string, int64_t> many;
  for (int64_t i = 0; i < 20'000; ++i) many.insert("key" + std::to_string(i), i);
  EXPECT_EQ(unpickle(plain_pickle(many)).toGenericDict().size(), 20'000u);
}

TEST(HostileFiles, WhoseOpcodesAreNoneOfOursAreRefused) {
  // Goal: no value is made of a pickle that LibTorch would not have written. Method: one of each
  // kind.
  EXPECT_EQ(why_refused(hand_made("cos\nsystem\n(X\1\0\0\0atR."s)),
            "it names os.system, which no checkpoint of ours names");
  EXPECT_EQ(why_refused(hand_made("cbad\x1b[2J\nsystem\n)R.")),
            "it names what no checkpoint of ours names");
  EXPECT_EQ(why_refused(hand_made("N0N.")), "opcode 48 of its pickle is in no checkpoint of ours");
  EXPECT_EQ(why_refused(hand_made("h\0."s)), "its pickle remembers what it has not");
  EXPECT_EQ(why_refused(hand_made("Nq\1."s)), "its pickle remembers values out of order");
  EXPECT_EQ(why_refused(hand_made("Nr\xff\xff\xff\xff.")),
            "its pickle remembers values out of order");
  EXPECT_EQ(why_refused(hand_made("K\x01(\x85.")), "its pickle uses values that are not there");
  EXPECT_EQ(why_refused(hand_made("}(Nu.")), "it has a key without a value");
  EXPECT_EQ(why_refused(hand_made("X\xff\xff\xff\xff.")), "its pickle is cut off");
  EXPECT_EQ(why_refused(hand_made("N")), "its pickle is cut off");
  EXPECT_EQ(why_refused(hand_made("NN.")), "its pickle does not end with one value");
  EXPECT_EQ(why_refused(hand_made("ctorch._utils\n_rebuild_tensor_v2\n.")),
            "its pickle does not end with one value");
  const std::string tagged = "ctorch.jit._pickle\nrestore_type_tag\n](e";
  EXPECT_EQ(why_refused(hand_made(tagged + pushed_text("List[int]") + "\x86R.")), "");
  for (const std::string& type :
       {repeated("List[", 1'000'000), repeated("not ", 1'000'000) + "int", "List[int"s})
    EXPECT_EQ(why_refused(hand_made(tagged + pushed_text(type) + "\x86R.")),
              "it has a type that cannot be");
}

// ---- records -----------------------------------------------------------------------

TEST(HostileFiles, WhoseRecordIsNamedManyTimesAreRefused) {
  // Goal: no record is copied again and again. Method: one of 64 KiB, ten thousand times.
  const NamedRecords record = {{"data/0", std::string(1 << 16, '\0')}};
  const std::string file = hand_made(
      "(" + storage_tuple("0", "Byte", 1 << 16) + "q\0Q"s + repeated("h\0Q"s, 9'999) + "t.",
      record);
  const HeldBytes held;
  EXPECT_EQ(why_refused(file), "two storages have one record");
  EXPECT_LE(held.most_bytes(), 16 * file.size());
}

TEST(HostileFiles, WhoseRecordsAreCompressedAreRefused) {
  // Goal: nothing is inflated. Method: a version of 16 MB, which takes a few KB in the file, and
  // which LibTorch's reader would inflate before it says what records there are.
  const std::string file = hand_made("N.", {{"version", std::string(1 << 24, '0')}}, true);
  ASSERT_LT(file.size(), 1u << 16);
  const HeldBytes held;
  EXPECT_EQ(why_refused(file), "one of its records is compressed or encrypted");
  EXPECT_LE(held.most_bytes(), 1u << 20);
}

TEST(HostileFiles, WhoseTensorsReachBeyondTheirRecordsAreRefused) {
  // Goal: no memory is read that the file has not. Method: storages and tensors that claim more, by
  // size, offset, stride and overflow; as a tensor and inside one.
  const NamedRecords record = {{"data/0", std::string(16, '\0')}, {"data/1", std::string(8, '\0')}};
  const auto refusal = [&record](int64_t offset, const std::vector<int64_t>& sizes,
                                 const std::vector<int64_t>& strides) {
    return why_refused(hand_made(
        strided_tensor(storage_tuple("0", "Float", 4), offset, sizes, strides) + ".", record));
  };
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::string larger = "a tensor is larger than its record";
  EXPECT_EQ(refusal(0, {4}, {1}), "");
  EXPECT_EQ(refusal(0, {5}, {1}), larger);
  EXPECT_EQ(refusal(1, {4}, {1}), larger);
  EXPECT_EQ(refusal(0, {2}, {4}), larger);
  EXPECT_EQ(refusal(-1, {4}, {1}), larger);
  EXPECT_EQ(refusal(0, {-4}, {1}), larger);
  EXPECT_EQ(refusal(0, {4}, {-1}), larger);
  EXPECT_EQ(refusal(1, {3}, {kMost}), larger);  // Its last element is the 2^64th.
  EXPECT_EQ(refusal(0, {kMost, kMost}, {kMost, kMost}), larger);
  EXPECT_EQ(refusal(0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)),
            "it has a tensor that cannot be");
  EXPECT_EQ(refusal(0, {2, 2}, {1}), "it has a tensor that cannot be");

  const std::string small = "a storage is larger than its record";
  for (const int64_t elements : {int64_t{5}, kMost, kMost / 4 + 1})
    EXPECT_EQ(
        why_refused(hand_made(
            strided_tensor(storage_tuple("0", "Float", elements), 0, {1}, {1}) + ".", record)),
        small);
  EXPECT_EQ(why_refused(hand_made(strided_tensor(storage_tuple("2", "Float", 1), 0, {1}, {1}) + ".",
                                  record)),
            "a tensor's record is not there");

  const std::string values = strided_tensor(storage_tuple("1", "Float", 2), 0, {2}, {1});
  const std::string far =
      strided_tensor(storage_tuple("0", "Long", 2), 0, {1, 1 << 20}, {1 << 20, 1});
  EXPECT_EQ(why_refused(hand_made(sparse_tensor(far, values, 3) + ".", record)), larger);
}

TEST(HostileFiles, WhoseIndicesAreOutOfRangeAreRefused) {
  // Goal: no operator writes beside a dense tensor. Method: a sparse tensor of three elements with
  // the index 99, as LibTorch writes it.
  const at::Tensor indices = at::tensor({int64_t{0}, int64_t{99}}).view({1, 2});
  const at::Tensor sparse = at::_sparse_coo_tensor_unsafe(indices, at::ones(2), {3});
  const std::string why = why_refused(plain_pickle(sparse));
  EXPECT_TRUE(why.starts_with("it has a sparse tensor that cannot be: ")) << why;
}

TEST(HostileFiles, ThatAreCutOffOrChangedAreReadOrRefused) {
  // Goal: nothing but an exception. Method: every length of a file, each of whose bytes is then
  // changed in three ways; what is read can be computed with.
  c10::impl::GenericDict value(c10::StringType::get(), c10::AnyType::get());
  value.insert("weight", at::ones({2, 3}));
  value.insert("sparse", at::eye(2).to_sparse());
  const std::string file = plain_pickle(value);
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(why_refused(file.substr(0, size)), "") << size;
  for (size_t i = 0; i < file.size(); ++i)
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      try {
        unpickle(changed).visit([](const c10::IValue& part) {
          if (part.isTensor()) static_cast<void>(part.toTensor().clone());
          return false;
        });
      } catch (const std::exception& error) {
        EXPECT_EQ(in_one_line(error).find('\n'), std::string::npos) << i;
      }
    }
}

// ---- workers -----------------------------------------------------------------------

TEST(HostileFiles, AreNamedByTheWorkerThatReadsThem) {
  // Goal: a person knows which file to look at. Method: a list that holds itself, as a value and as
  // a checkpoint's head.
  const std::string hostile = hand_made("]q\0(h\0e."s);
  Program program(training_registry());
  std::vector<std::string> errors;
  program.worker("trainer", [&](Worker& worker) {
    save_piece(*worker.caller(), "model", hostile);
    save_piece(*worker.caller(), "one.head", hostile);
    try {
      static_cast<void>(worker.load_checkpoint("model"));
    } catch (const RpcError& error) {
      errors.emplace_back(error.what());
    }
    try {
      DistributedCheckpoint checkpoint(worker, "one");
      static_cast<void>(checkpoint.resume());
    } catch (const RpcError& error) {
      errors.emplace_back(error.what());
    }
  });
  sim::Cluster(Seed{11}, program).run();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_NE(errors[0].find("checkpoint 'model' cannot be read: its pickle remembers what is not "
                           "whole"),
            std::string::npos)
      << errors[0];
  EXPECT_NE(errors[1].find("'one.head' cannot be read: its pickle remembers what is not whole"),
            std::string::npos)
      << errors[1];
}

TEST(HostileFiles, AreNotWritten) {
  // Goal: whoever saves hears at once of a value that could not be read. Method: lists 65 deep in
  // each other, and 64.
  c10::IValue value(1);
  std::vector<std::string> errors;
  for (int depth = 1; depth <= 65; ++depth) {
    c10::impl::GenericList list(c10::AnyType::get());
    list.push_back(value);
    value = list;
    if (depth == 64) EXPECT_EQ(why_refused(plain_pickle(value)), "");
  }
  EXPECT_THROW(static_cast<void>(plain_pickle(value)), c10::Error);
  Program program(training_registry());
  program.worker("trainer", [&](Worker& worker) {
    try {
      worker.save_checkpoint("deep", value);
    } catch (const RpcError& error) {
      errors.emplace_back(error.what());
    }
  });
  sim::Cluster(Seed{11}, program).run();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("the value cannot be pickled: its values lie more than 64 deep"),
            std::string::npos)
      << errors[0];
}

}  // namespace
}  // namespace rehearsal::testing
