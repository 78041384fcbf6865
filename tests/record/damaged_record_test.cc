// Records that a broken disk, or somebody else, has changed.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "core/base/hash.h"
#include "record/bytes.h"
#include "record/record_file.h"
#include "record/ring_file.h"
#include "tests/effort.h"
#include "tests/held_bytes.h"
#include "tests/mutations.h"
#include "tests/temporary_folder.h"

namespace rehearsal::record {
namespace {

constexpr uint64_t kMutations = 1'000;

template <class... Input>
std::string bytes_of(const Input&... input) {
  std::string bytes;
  append_bytes(input..., bytes);
  return bytes;
}

// The bytes of an item of each kind.
std::vector<std::string> items() {
  std::string tensor(40, 't');
  auto body = std::make_shared<FrameBody>();
  body->envelope = "envelope";
  body->segments.push_back(
      {.data = reinterpret_cast<std::byte*>(tensor.data()), .bytes = tensor.size()});
  const Frame frame{{.source = {3}, .destination = {4}, .sequence = 300}, body};
  const Error error{.kind = ErrorKind::peer_lost, .text = "gone", .chain = {"x", "y"}};
  Hello hello{.worker = {1}, .incarnation = {9}, .greeting = "hello"};
  PeerRefused refused{.peer = {1}};
  return {bytes_of(Posted{.from = {Source::Kind::execution, 9},
                          .code = 0x1234567890abcdef,
                          .readings = {{Reading::Kind::now, 5},
                                       {Reading::Kind::loaded, 0, "checkpoint"},
                                       {Reading::Kind::may_not_park}}}),
          bytes_of(WorkerId{1}, frame) + tensor,
          bytes_of(hello),
          bytes_of(PeerLost{{0}, error, true}),
          bytes_of(Drained{{1}}),
          bytes_of(refused),
          bytes_of(Fired{17}),
          bytes_of(Aborted{error}),
          bytes_of(Read{Read::Kind::now, 12}),
          bytes_of(Outcome{{1, 2, UINT64_MAX}}),
          bytes_of(Ended{error})};
}

std::string header_text() {
  RecordHeader header{.build = "0123", .greeting = "hello", .torch_threads = 2};
  header.node.id = {1};
  header.node.incarnation = incarnation_of({1}, 77);
  header.node.names = {"ps", "trainer"};
  header.arguments = {"run", "storm"};
  return text_of(header);
}

class DamagedRecord : public testing::Test {
 protected:
  // A record of these, whose checksums are right.
  static std::string record_of(const std::string& text, const std::vector<std::string>& items) {
    std::string ring;
    for (const std::string& item : items) {
      const ItemFrame frame{static_cast<uint32_t>(item.size()),
                            checksum_of(item, ring.size() + sizeof(ItemFrame))};
      ring.append(reinterpret_cast<const char*>(&frame), sizeof frame).append(item);
    }
    Preface preface{.magic = {},
                    .version = kVersion,
                    .text_bytes = static_cast<uint32_t>(text.size()),
                    .text_checksum = hash_bytes(text.data(), text.size()),
                    .ring_offset = kTextOffset + text.size(),
                    .ring_bytes = ring.size() + 1,
                    .written = ring.size()};
    std::memcpy(preface.magic, kMagic, sizeof kMagic);
    std::string bytes(kTextOffset, '\0');
    std::memcpy(bytes.data(), &preface, sizeof preface);
    return bytes + text + ring + '\0';
  }

  // It is refused in one line that names it, or read, and holds no more than a multiple of its
  // size. Whether it is refused.
  [[nodiscard]] bool is_refused(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    const HeldBytes held;
    const Result<std::unique_ptr<Record>> read = read_record(path_);
    EXPECT_LT(held.most_bytes(), 192 * bytes.size() + (1 << 17));
    if (read.ok()) return false;
    const std::string text = Result<std::unique_ptr<Record>>(read_record(path_)).error().text;
    EXPECT_TRUE(text.starts_with(path_ + ": ")) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return true;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("damaged.record");
};

TEST_F(DamagedRecord, IsRefusedWhateverWasDoneToIt) {
  // Goal: one line, no crash, bounded memory. Method: thousands of drawn changes of all its bytes;
  // one that lies beyond what is read, or that changes nothing, may be taken.
  const std::string whole = record_of(header_text(), items());
  ASSERT_FALSE(is_refused(whole));
  std::mt19937_64 random(3);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < tries(kMutations) && !HasFailure(); ++i)
    refused += is_refused(mutated(whole, random)) ? 1 : 0;
  EXPECT_GT(refused, tries(kMutations) / 2);
}

TEST_F(DamagedRecord, WhoseChecksumsAreRightIsRefusedOrReadAsItSays) {
  // Goal: as above against somebody who writes the checksums anew. Method: items and header are
  // changed before these are computed.
  std::mt19937_64 random(4);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < tries(kMutations) && !HasFailure(); ++i) {
    std::vector<std::string> changed = items();
    std::string& item = changed[random() % changed.size()];
    item = mutated(item, random);
    std::string text = header_text();
    if (random() % 2 == 0) text = mutated(text, random);
    refused += is_refused(record_of(text, changed)) ? 1 : 0;
  }
  EXPECT_GT(refused, tries(kMutations) / 4);
}

TEST_F(DamagedRecord, OfALinkToNobodyIsRefused) {
  // Goal: a node is given nothing that a transport cannot bring it. Method: each item of a link, of
  // the last worker that there is and of numbers beyond it.
  const Frame frame{{.source = {3}, .destination = {4}, .sequence = 300}, nullptr};
  const Error error{.kind = ErrorKind::peer_lost, .text = "gone"};
  for (const uint32_t worker : {1U, 2U, 4'000'000'000U, UINT32_MAX}) {
    const WorkerId peer{worker};
    for (const std::string& item :
         {bytes_of(peer, frame), bytes_of(PeerLost{peer, error, false}), bytes_of(Drained{peer})}) {
      std::vector<std::string> all = items();
      all.push_back(item);
      EXPECT_EQ(is_refused(record_of(header_text(), all)), worker > 1) << worker;
    }
  }
}

TEST_F(DamagedRecord, OfMoreThreadsThanAnyMachineHasIsRefused) {
  // Goal: LibTorch is not told to start them. Method: the last number that may be, and the next.
  const std::string number = "\"torch_threads\":2";
  for (const auto& [threads, refused] :
       {std::pair{"1024", false}, {"1025", true}, {"2147483647", true}, {"0", true}}) {
    std::string text = header_text();
    text.replace(text.find(number), number.size(), "\"torch_threads\":" + std::string(threads));
    EXPECT_EQ(is_refused(record_of(text, items())), refused) << threads;
  }
}

TEST_F(DamagedRecord, OfManySmallPartsHoldsNoMoreThanAMultipleOfItsSize) {
  // Goal: numbers of a byte do not become objects of a hundred. Method: a chain of empty names,
  // readings without contents, segments without bytes, items of a byte; and a header of brackets.
  std::string chain = bytes_of(Aborted{{.kind = ErrorKind::timeout}});
  chain.pop_back();
  put_number(chain, 50'000);
  chain.append(50'000, '\0');
  std::string readings = bytes_of(Posted{.from = {Source::Kind::execution, 9}});
  readings.append(50'000, '\2');
  EXPECT_FALSE(is_refused(record_of(header_text(), {chain})));
  static_cast<void>(is_refused(record_of(header_text(), {readings})));
  const std::vector<std::string> small(5'000, bytes_of(Fired{1}));
  EXPECT_FALSE(is_refused(record_of(header_text(), small)));
  EXPECT_TRUE(is_refused(record_of(std::string(10'000, '['), {})));
}

TEST_F(DamagedRecord, WhoseHeaderNestsDeeplyIsRefused) {
  // Goal: no stack is used up, neither by the values nor by the words for what is wrong with them.
  // Method: a number's place holds arrays in arrays, of a few levels and of very many.
  const std::string number = "\"torch_threads\":2";
  const std::string good = header_text();
  ASSERT_NE(good.find(number), std::string::npos) << good;
  for (const size_t levels : {size_t{1}, size_t{50}, size_t{200'000}}) {
    std::string text = good;
    text.replace(text.find(number), number.size(),
                 "\"torch_threads\":" + std::string(levels, '[') + std::string(levels, ']'));
    EXPECT_TRUE(is_refused(record_of(text, items()))) << levels;
  }
}

}  // namespace
}  // namespace rehearsal::record
