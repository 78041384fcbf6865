// The memory of values: so much for each byte that they were sent in. ValueReader counts it before
// it allocates, about as much as it then does, and no more than it may.
#include <ATen/Functions.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/fibers/sanitizer.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

constexpr uint64_t kCount = 100'000;
constexpr uint64_t kEnough = uint64_t{1} << 32;

struct Record {
  std::optional<std::string> name;
  std::optional<double> weight;
  std::vector<int64_t> ids;
  friend void describe(Record& record, auto&& fields) {
    fields(record.name, record.weight, record.ids);
  }
};

struct Large {
  std::array<int64_t, 32> numbers{};
  friend void describe(Large& large, auto&& fields) { fields(large.numbers); }
};

// A newer program sends three fields more than this one knows.
struct Older {
  int64_t number = 0;
  UnknownFields unknown;
  friend void describe(Older& value, auto&& fields) {
    fields.versioned("Options", value.unknown, value.number);
  }
};
struct Newer {
  int64_t number = 0;
  bool a = false, b = false, c = false;
  friend void describe(Newer& value, auto&& fields) {
    fields.versioned("Options", kRefuseUnknownFields, value.number, value.a, value.b, value.c);
  }
};

// A type with a Value of its own, which says what it holds.
struct Zeros {
  std::vector<double> all;
};

}  // namespace

template <>
struct Value<Zeros> {
  static void write(ValueWriter& writer, const Zeros& zeros) { writer.count(zeros.all.size()); }
  static Zeros read(ValueReader& reader) {
    const uint64_t count = reader.count();
    reader.hold_block(count, sizeof(double));
    return {std::vector<double>(count)};
  }
  static void sign(WireSignature& signature) { signature += "Zeros"; }
};

namespace {

struct Kind {
  std::string name;
  uint64_t ratio;  // bytes of memory for each byte sent, as measured
  Payload sent;
  // Reads the payload; returns what keeps the value.
  std::function<std::shared_ptr<void>(Payload&)> read;
};

template <class T>
std::shared_ptr<void> read_into(Payload& payload) {
  ValueReader reader(payload);
  auto value = std::make_shared<T>(Value<T>::read(reader));
  reader.finish();
  return value;
}

template <class T, class Sent>
Kind kind_as(std::string name, uint64_t ratio, const Sent& value) {
  return {std::move(name), ratio, written(value), &read_into<T>};
}
template <class T>
Kind kind(std::string name, uint64_t ratio, const T& value) {
  return kind_as<T>(std::move(name), ratio, value);
}

c10::IValue list_of(const std::function<c10::IValue()>& element) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (uint64_t i = 0; i < kCount; ++i) list.push_back(element());
  return list;
}

c10::IValue empty_dict() {
  return c10::impl::GenericDict(c10::AnyType::get(), c10::AnyType::get());
}

void add_ivalues(std::vector<Kind>& all) {
  all.push_back(kind("IValues: empty dictionaries", 215, list_of(&empty_dict)));
  all.push_back(kind("IValues: empty lists", 40,
                     list_of([] { return c10::impl::GenericList(c10::AnyType::get()); })));
  all.push_back(
      kind("IValues: empty lists of integers", 40, list_of([] { return c10::List<int64_t>(); })));
  all.push_back(kind("IValues: empty tuples", 56, list_of([] {
                       return c10::ivalue::Tuple::create(std::vector<c10::IValue>());
                     })));
  all.push_back(kind("IValues: tuples of four", 32, list_of([] {
                       return c10::ivalue::Tuple::create(std::vector<c10::IValue>(4));
                     })));
  all.push_back(kind("IValues: empty texts", 40, list_of([] { return std::string(); })));
  all.push_back(kind("IValues: texts of 100", 2, list_of([] { return std::string(100, 'a'); })));
  all.push_back(kind("IValues: nothing", 16, list_of([] { return c10::IValue(); })));
  all.push_back(kind("IValues: undefined tensors", 8, list_of([] { return at::Tensor(); })));
  all.push_back(kind("IValues: lists of lists of lists", 44, list_of([] {
                       c10::impl::GenericList inner(c10::AnyType::get());
                       c10::impl::GenericList outer(c10::AnyType::get());
                       outer.push_back(inner);
                       return outer;
                     })));
  all.push_back(kind("IValues: lists of optional lists of numbers", 70, list_of([] {
                       return c10::impl::GenericList(c10::OptionalType::create(
                           c10::ListType::create(c10::NumberType::get())));
                     })));
  all.push_back(kind("IValues: lists of tuples of numbers", 64, list_of([] {
                       return c10::impl::GenericList(
                           c10::TupleType::create({c10::IntType::get(), c10::IntType::get()}));
                     })));
}

void add_dictionaries_and_numbers(std::vector<Kind>& all) {
  c10::impl::GenericDict dict(c10::IntType::get(), c10::AnyType::get());
  for (uint64_t i = 0; i < kCount; ++i) dict.insert(static_cast<int64_t>(i), c10::IValue());
  all.push_back(kind("IValues: entries of a dictionary", 30, c10::IValue(dict)));
  all.push_back(kind("IValues: dictionaries of one", 94, list_of([] {
                       c10::impl::GenericDict one(c10::IntType::get(), c10::AnyType::get());
                       one.insert(int64_t{1}, c10::IValue());
                       return one;
                     })));
  c10::List<int64_t> integers;
  integers.resize(kCount);
  all.push_back(kind("IValues: integers", 16, c10::IValue(integers)));
  all.push_back(
      kind("a List of bools", 16,
           c10::List<bool>(c10::ArrayRef(std::make_unique<bool[]>(kCount).get(), kCount))));
  c10::Dict<int64_t, bool> numbered;
  for (uint64_t i = 0; i < kCount; ++i) numbered.insert(static_cast<int64_t>(i), true);
  all.push_back(kind("a Dict of bools", 38, numbered));
}

void add_sequences(std::vector<Kind>& all) {
  all.push_back(kind("vector of integers", 8, std::vector<int64_t>(kCount)));
  all.push_back(kind("vector of bools", 0, std::vector<bool>(kCount)));
  all.push_back(kind("vector of empty texts", 32, std::vector<std::string>(kCount)));
  all.push_back(
      kind("vector of texts of 16", 4, std::vector<std::string>(kCount, std::string(16, 'a'))));
  all.push_back(kind("vector of empty vectors", 24, std::vector<std::vector<int64_t>>(kCount)));
  all.push_back(kind("vector of vectors of one", 28,
                     std::vector<std::vector<int64_t>>(kCount, std::vector<int64_t>(1))));
  all.push_back(kind("vector of tensors", 8, std::vector<at::Tensor>(kCount)));
  all.push_back(kind("vector of records", 20, std::vector<Record>(kCount)));
  all.push_back(
      kind("vector of large ones, or none", 264, std::vector<std::optional<Large>>(kCount)));
  all.push_back(
      kind("vector of variants", 132, std::vector<std::variant<std::monostate, Large>>(kCount)));
  all.push_back(
      kind("vector of tuples", 22, std::vector<std::tuple<std::string, std::string>>(kCount)));
  std::vector<std::unique_ptr<int64_t>> pointers(kCount);
  for (auto& pointer : pointers) pointer = std::make_unique<int64_t>(1);
  all.push_back(kind("vector of pointers", 20, pointers));
  all.push_back(kind("deque of integers", 8, std::deque<int64_t>(kCount)));
  all.push_back(
      kind("deque of large ones, or none", 285, std::deque<std::optional<Large>>(kCount)));
  all.push_back(kind("vector of empty deques", 688, std::vector<std::deque<int64_t>>(kCount)));
  all.push_back(kind("list of bools", 32, std::list<bool>(kCount)));
}

void add_tables(std::vector<Kind>& all) {
  std::map<int64_t, int64_t> map;
  std::set<int64_t> set;
  std::unordered_map<int64_t, int64_t> hash_map;
  std::unordered_set<int64_t> hash_set;
  for (uint64_t i = 0; i < kCount; ++i) {
    const auto number = static_cast<int64_t>(i);
    map[number] = hash_map[number] = 0;
    set.insert(number);
    hash_set.insert(number);
  }
  all.push_back(kind("map of integers", 16, map));
  all.push_back(kind("set of integers", 16, set));
  all.push_back(kind("unordered_map of integers", 12, hash_map));
  all.push_back(kind("unordered_set of integers", 15, hash_set));
  all.push_back(kind("vector of empty maps", 48, std::vector<std::map<int64_t, int64_t>>(kCount)));
  all.push_back(kind("vector of unordered_sets of one", 100,
                     std::vector<std::unordered_set<int64_t>>(kCount, {1})));
  all.push_back(kind_as<std::vector<Older>>("vector of structs with unknown fields", 21,
                                            std::vector<Newer>(kCount)));
  all.push_back(kind("a type of its own", 266672, Zeros{std::vector<double>(kCount)}));
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  add_ivalues(all);
  add_dictionaries_and_numbers(all);
  add_sequences(all);
  add_tables(all);
  return all;
}

uint64_t memory_in_use() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

TEST(DecodedSize, WhatIsCountedBeforehandIsWhatIsHeldThen) {
  // Reads each kind of value, and compares the heap before and after with what was counted.
  for (Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const uint64_t sent = kind.sent.values.size();
    kind.sent.decoded_bytes = kEnough;
    const uint64_t before = memory_in_use();
    const std::shared_ptr<void> value = kind.read(kind.sent);
    const uint64_t held = memory_in_use() - before;
    const uint64_t counted = kind.sent.decoded;
    std::cout << kind.name << ": " << held / sent << " bytes for each sent, " << counted / sent
              << " counted\n";
#if !defined(REHEARSAL_ADDRESS_SANITIZER)
    EXPECT_NEAR(static_cast<double>(held) / static_cast<double>(sent),
                static_cast<double>(kind.ratio), 0.5 + 0.1 * static_cast<double>(kind.ratio));
    EXPECT_LE(held, counted + counted / 8 + 4096);
    EXPECT_LE(counted, 2 * held + 4096);
#endif
  }
}

TEST(DecodedSize, OneByteLessRoomThanIsCountedIsTooLittle) {
  // Each kind is read with exactly the room that it needs, and refused with less.
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    Payload whole = kind.sent;
    whole.decoded_bytes = kEnough;
    (void)kind.read(whole);
    const uint64_t of_bytes = kDecodedRatio * whole.values.size();
    if (whole.decoded <= of_bytes) continue;  // Never refused.
    Payload exact = kind.sent;
    exact.decoded_bytes = whole.decoded - of_bytes;
    (void)kind.read(exact);
    EXPECT_EQ(exact.decoded, whole.decoded);
    Payload tight = kind.sent;
    tight.decoded_bytes = exact.decoded_bytes - 1;
    try {
      (void)kind.read(tight);
      ADD_FAILURE() << "accepted";
    } catch (const BadValue& bad) {
      EXPECT_NE(std::string(bad.what()).find("PeerLimits::decoded_bytes"), std::string::npos)
          << bad.what();
    }
  }
}

#if !defined(REHEARSAL_ADDRESS_SANITIZER)
TEST(DecodedSize, SixteenMegabytesOfEmptyDictionariesAreRefusedBeforeTheyAreMade) {
  // The count of the list alone says that there is too much: nothing of it is read.
  constexpr uint64_t kBytes = 16 << 20;
  const uint64_t dictionaries = kBytes / 2;
  Payload payload;
  ValueWriter writer(payload);
  writer.ivalue(c10::impl::GenericList(c10::AnyType::get()));
  const std::string list_tag = payload.values.substr(0, 1);
  writer.ivalue(empty_dict());
  const std::string dictionary = payload.values.substr(2);
  ASSERT_EQ(dictionary.size(), 2u);
  Payload attack;
  attack.values = list_tag;
  ValueWriter(attack).count(dictionaries);
  for (uint64_t i = 0; i < dictionaries; ++i) attack.values += dictionary;
  const uint64_t most = kDecodedBytes + kDecodedRatio * attack.values.size();
  const uint64_t before = memory_in_use();
  uint64_t peak = 0;
  EXPECT_NE(refusal<c10::IValue>(attack).find("the values would hold more than"),
            std::string::npos);
  peak = memory_in_use() - before;
  EXPECT_LT(peak, kBytes);  // All is given back.
  EXPECT_LT(most, uint64_t{350} << 20);
}
#endif

TEST(DecodedSize, MoreTensorsWithoutElementsThanAReceiverTakesAreNotSent) {
  const at::Tensor empty = at::empty({0});
  EXPECT_NE(refusal_to_write(std::vector<at::Tensor>(kDecodedBytes / 128 + 1, empty))
                .find("too much for one message"),
            std::string::npos);
  EXPECT_EQ(written(std::vector<at::Tensor>(1000, empty)).sent.size(), 1000u);
}

}  // namespace
}  // namespace rehearsal
