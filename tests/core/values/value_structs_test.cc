#include "core/values/value_structs.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/functions/function_registry.h"
#include "tests/core/values/value_round_trip.h"

namespace rehearsal {
namespace {

// ---- structs that hold themselves ----

struct Tree {
  int64_t number = 0;
  std::vector<Tree> children;
  bool operator==(const Tree&) const = default;
  friend void describe(Tree& tree, auto&& fields) { fields(tree.number, tree.children); }
};

struct Chain {
  std::unique_ptr<Chain> next;
  std::optional<c10::IValue> value;
  friend void describe(Chain& chain, auto&& fields) { fields(chain.next, chain.value); }
};

struct Forest {
  std::map<std::string, Tree> trees;
  std::vector<Forest> more;
  friend void describe(Forest& forest, auto&& fields) { fields(forest.trees, forest.more); }
};

struct Crowd;
struct CrowdHash {
  size_t operator()(const Crowd& crowd) const;
};
struct Crowd {
  std::unordered_set<Crowd, CrowdHash> members;
  bool operator==(const Crowd& other) const { return members.size() == other.members.size(); }
  friend void describe(Crowd& crowd, auto&& fields) { fields(crowd.members); }
};
size_t CrowdHash::operator()(const Crowd& crowd) const { return crowd.members.size(); }

Tree deep_tree(int depth) {
  Tree tree{.number = depth, .children = {}};
  for (int i = 1; i < depth; ++i) {
    Tree outer{.number = i, .children = {}};
    outer.children.push_back(std::move(tree));
    tree = std::move(outer);
  }
  return tree;
}

constexpr const char* kTooDeep = "values nested more than 64 deep";

// Neither has a constructor that `{}` may call.
struct Labelled {
  c10::Dict<std::string, int64_t> labels;
  c10::List<double> numbers;
  friend void describe(Labelled& value, auto&& fields) { fields(value.labels, value.numbers); }
};

TEST(ValueStructs, ListsAndDictionariesOfLibTorchAreFields) {
  Labelled value;
  value.labels.insert("one", 1);
  value.numbers.push_back(0.5);
  const auto back = read<Labelled>(written(value));
  EXPECT_EQ(back.labels.at("one"), 1);
  EXPECT_EQ(back.numbers.get(0), 0.5);
}

TEST(ValueStructs, AStructMayHoldItself) {
  expect_round_trip(Tree{1, {{2, {}}, {3, {{4, {}}}}}});
  expect_round_trip(deep_tree(64));
  Chain chain;
  chain.next = std::make_unique<Chain>();
  chain.next->value = c10::IValue("end");
  EXPECT_EQ(read<Chain>(written(chain)).next->value->toStringRef(), "end");
}

TEST(ValueStructs, NestingIsBoundedWhenWrittenAndWhenRead) {
  // 65 structs in each other, then 100,000 that only bytes can promise.
  EXPECT_EQ(refusal_to_write(deep_tree(65)), kTooDeep);
  std::string bytes;
  for (int i = 0; i < 100000; ++i) bytes += std::string("\x02\x00\x01", 3);
  EXPECT_EQ(refusal<Tree>(bytes), kTooDeep);
  bytes.clear();
  for (int i = 0; i < 100000; ++i) bytes += "\x02\x01";
  EXPECT_EQ(refusal<Chain>(bytes), kTooDeep);
}

TEST(ValueStructs, KeysThatAreWrittenApartAreAsDeepAsWhatHoldsThem) {
  Crowd crowd;
  for (int i = 0; i < 63; ++i) {
    Crowd outer;
    outer.members.insert(std::move(crowd));
    crowd = std::move(outer);
  }
  EXPECT_EQ(refusal_to_write(crowd), "accepted");
  Crowd outer;
  outer.members.insert(crowd);
  EXPECT_EQ(refusal_to_write(outer), kTooDeep);
}

TEST(ValueStructs, AStructAndTheIValuesInItShareOneDepth) {
  c10::IValue deep;
  for (int i = 0; i < 62; ++i) deep = c10::ivalue::Tuple::create({deep});
  Chain chain;
  chain.value = deep;
  EXPECT_EQ(refusal_to_write(chain), "accepted");
  chain.value = c10::ivalue::Tuple::create({deep});
  EXPECT_EQ(refusal_to_write(chain), kTooDeep);
}

TEST(ValueStructs, TheSignatureOfAStructInItselfNamesTheOuterOne) {
  EXPECT_EQ(signature_of<Tree>(), "struct(int64,[struct^0],)");
  EXPECT_EQ(signature_of<Forest>(), "struct({bytes:struct(int64,[struct^0],)},[struct^0],)");
  EXPECT_EQ((signature_of<std::pair<Tree, Tree>>()),
            "<struct(int64,[struct^0],),struct(int64,[struct^0],)>");
}

// ---- versions of one struct ----

struct First {
  double rate = 0.1;
  UnknownFields unknown;
  friend void describe(First& value, auto&& fields) {
    fields.versioned("Settings", value.unknown, value.rate);
  }
};

struct Second {
  double rate = 0.1;
  std::string schedule = "flat";
  std::vector<at::Tensor> masks;
  std::optional<First> inner;
  UnknownFields unknown;
  friend void describe(Second& value, auto&& fields) {
    fields.versioned("Settings", value.unknown, value.rate, value.schedule, value.masks,
                     value.inner);
  }
};

struct Strict {
  double rate = 0.1;
  friend void describe(Strict& value, auto&& fields) {
    fields.versioned("Settings", kRefuseUnknownFields, value.rate);
  }
};

struct Changed {
  int64_t rate = 0;
  UnknownFields unknown;
  friend void describe(Changed& value, auto&& fields) {
    fields.versioned("Settings", value.unknown, value.rate);
  }
};

static_assert(Sendable<First> && Sendable<Second> && Sendable<Strict>);

Second second() {
  return {.rate = 0.5,
          .schedule = "steep",
          .masks = {at::ones(1), at::ones(2)},
          .inner = First{.rate = 7, .unknown = {}},
          .unknown = {}};
}

template <class T>
std::string registered(T (*function)(T)) {
  FunctionRegistry registry;
  registry.function("f", function);
  return registry.describe();
}

TEST(VersionedStruct, VersionsHaveOneSignature) {
  // Programs compare these before they talk.
  EXPECT_EQ(registered<First>([](First value) { return value; }),
            registered<Second>([](Second value) { return value; }));
  EXPECT_EQ(signature_of<Second>(), "struct(versioned Settings)");
  EXPECT_EQ(signature_of<Strict>(), signature_of<First>());
}

TEST(VersionedStruct, FieldsThatAnOlderProgramDoesNotSendKeepTheirDefaults) {
  const auto back = read<Second>(written(First{.rate = 0.25, .unknown = {}}));
  EXPECT_EQ(back.rate, 0.25);
  EXPECT_EQ(back.schedule, "flat");
  EXPECT_TRUE(back.masks.empty());
  EXPECT_TRUE(back.unknown.fields.empty());
}

TEST(VersionedStruct, UnknownFieldsAreKeptAndSentOn) {
  // Newer to older, changed there, and on to newer again: tensors between two others stay theirs.
  using Newer = std::tuple<at::Tensor, Second, at::Tensor>;
  using Older = std::tuple<at::Tensor, First, at::Tensor>;
  const at::Tensor before = at::zeros(1);
  const at::Tensor after = at::zeros(2);
  auto passed = read<Older>(written(Newer{before, second(), after}));
  EXPECT_TRUE(std::get<0>(passed).is_same(before));
  EXPECT_TRUE(std::get<2>(passed).is_same(after));
  EXPECT_EQ(std::get<1>(passed).rate, 0.5);
  ASSERT_EQ(std::get<1>(passed).unknown.fields.size(), 3u);
  EXPECT_EQ(std::get<1>(passed).unknown.fields[1].tensors.size(), 2u);
  std::get<1>(passed).rate = 0.75;
  const auto back = read<Newer>(written(passed));
  EXPECT_EQ(std::get<1>(back).rate, 0.75);
  EXPECT_EQ(std::get<1>(back).schedule, "steep");
  EXPECT_TRUE(std::get<1>(back).masks.at(1).equal(at::ones(2)));
  EXPECT_EQ(std::get<1>(back).inner->rate, 7);
  EXPECT_TRUE(std::get<1>(back).unknown.fields.empty());
  EXPECT_TRUE(std::get<2>(back).is_same(after));
}

TEST(VersionedStruct, OneThatRefusesUnknownFieldsSaysHowManyThereAre) {
  EXPECT_EQ(read<Strict>(written(First{.rate = 3, .unknown = {}})).rate, 3);
  EXPECT_EQ(refusal<Strict>(written(second())),
            "a 'Settings' of a newer version: it has 4 fields, of which 1 are known here");
}

TEST(VersionedStruct, AFieldThatChangedItsTypeIsNamed) {
  EXPECT_EQ(refusal<Changed>(written(First{.rate = 1, .unknown = {}})),
            "field 1 of 'Settings': more values than the signature has");
}

TEST(VersionedStruct, LengthsThatReachBeyondTheirFieldAreRefused) {
  // One field: so many bytes, tensors and references, then the bytes.
  const std::string field = "field 1 of 'Settings': ";
  EXPECT_EQ(refusal<Changed>(std::string("\x01\x02\x00\x00\x02", 5)),
            field + "the values end too early");
  EXPECT_EQ(refusal<Changed>(std::string("\x01\x01\x01\x00\x02", 5)),
            field + "fewer tensors than named");
  EXPECT_EQ(refusal<Changed>(std::string("\x01\x01\x00\x01\x02", 5)),
            field + "fewer references than named");
  EXPECT_EQ(refusal<Changed>(std::string("\x01\x01\x00\x00\x02", 5)), "accepted");
  Payload spare = of_bytes(std::string("\x01\x01\x01\x00\x02", 5));
  spare.tensors.push_back(at::ones(1));
  EXPECT_EQ(refusal<Changed>(spare), field + "more tensors than named");
  // A number that would need the byte behind its field.
  EXPECT_EQ(refusal<Changed>(std::string("\x02\x01\x00\x00\x80\x01\x00\x00\x02", 9)),
            field + "the values end too early");
}

TEST(VersionedStruct, EveryTruncationAndEveryChangedByteIsAnErrorOrAValue) {
  expect_only_bad_values(second());
  expect_only_bad_values(read<First>(written(second())));
}

// ---- a codec of one's own ----

struct Polar {
  double radius = 0;
  double angle = 0;
  std::vector<Polar> parts;
  bool operator==(const Polar&) const = default;
};

}  // namespace

// Writes itself again, and a struct that describes its fields.
template <>
struct Value<Polar> {
  static void write(ValueWriter& writer, const Polar& value) {
    const Nesting nesting(writer);
    Value<std::pair<double, double>>::write(writer, {value.radius, value.angle});
    Value<std::vector<Polar>>::write(writer, value.parts);
  }
  static Polar read(ValueReader& reader) {
    const Nesting nesting(reader);
    const auto [radius, angle] = Value<std::pair<double, double>>::read(reader);
    if (radius < 0) throw BadValue("a negative radius");
    return {radius, angle, Value<std::vector<Polar>>::read(reader)};
  }
  static void sign(WireSignature& signature) { signature += "Polar"; }
};

namespace {

TEST(OwnCodec, ATypeMayHaveItsOwnWayAndCallItselfAgain) {
  const Polar value{1, 2, {{3, 4, {}}, {5, 6, {{7, 8, {}}}}}};
  expect_round_trip(value);
  expect_round_trip(std::optional<std::vector<Polar>>({value, value}));
  EXPECT_EQ(signature_of<std::vector<Polar>>(), "[Polar]");
  EXPECT_EQ(refusal<Polar>(written(Polar{-1, 0, {}})), "a negative radius");
  expect_only_bad_values(value);
  Polar deep;
  for (int i = 0; i < 64; ++i) deep = Polar{1, 1, {deep}};
  EXPECT_EQ(refusal_to_write(deep), kTooDeep);
}

}  // namespace
}  // namespace rehearsal
