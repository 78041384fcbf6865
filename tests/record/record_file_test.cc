#include "record/record_file.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "record/ring_file.h"
#include "tests/temporary_folder.h"

namespace rehearsal::record {
namespace {

RecordHeader header() {
  RecordHeader header{.build = "0123", .greeting = "hello", .torch_threads = 2};
  header.node.id = {1};
  header.node.incarnation = incarnation_of({1}, 77);
  header.node.seed = {5};
  header.node.names = {"ps", "trainer"};
  header.node.peer_timeout = std::chrono::seconds(3);
  header.node.mutants = {"some"};
  header.node.limits = {.decoded_bytes = 1, .gaps = 2, .served_bytes = 4, .gatherings = 3};
  header.arguments = {"run", "storm"};
  return header;
}

class RecordFile : public testing::Test {
 protected:
  std::unique_ptr<RingFile> create(uint64_t ring_bytes = kRingBytesMin) {
    return RingFile::create(path_, text_of(header()), ring_bytes).or_throw();
  }
  template <class... Input>
  static void append(RingFile& file, const Input&... input) {
    std::string bytes;
    append_bytes(input..., bytes);
    const std::string_view part = bytes;
    file.append({&part, 1});
  }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  // The error of reading it.
  std::string complaint() const {
    const auto record = read_record(path_);
    return record.ok() ? "" : Result<std::unique_ptr<Record>>(read_record(path_)).error().text;
  }
  // A record of a few items of different kinds.
  void write_some() {
    const auto file = create();
    append(*file, Posted{.from = {Source::Kind::execution, 9},
                         .code = 0x1234567890abcdef,
                         .readings = {{Reading::Kind::now, 5}, {Reading::Kind::may_not_park}}});
    append(*file, Read{Read::Kind::now, 12});
    append(*file, Outcome{{1, 2, UINT64_MAX}});
    append(*file,
           PeerLost{{0}, {.kind = ErrorKind::peer_lost, .text = "gone", .chain = {"x"}}, true});
    append(*file, Outcome{});
    append(*file, Ended{Error{.kind = kLastErrorKind, .text = "late"}});
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("trainer.record");
};

TEST_F(RecordFile, GivesBackWhatWasWritten) {
  write_some();
  const auto record = read_record(path_).or_throw();
  EXPECT_EQ(record->header.build, "0123");
  EXPECT_EQ(record->header.greeting, "hello");
  EXPECT_EQ(record->header.torch_threads, 2);
  EXPECT_EQ(record->header.arguments, header().arguments);
  EXPECT_EQ(record->header.node.id, WorkerId{1});
  EXPECT_EQ(record->header.node.incarnation, incarnation_of({1}, 77));
  EXPECT_EQ(record->header.node.seed, Seed{5});
  EXPECT_EQ(record->header.node.names, header().node.names);
  EXPECT_EQ(record->header.node.peer_timeout, std::chrono::seconds(3));
  EXPECT_EQ(record->header.node.window_frames, NodeOptions{}.window_frames);
  EXPECT_EQ(record->header.node.limits.decoded_bytes, 1u);
  EXPECT_EQ(record->header.node.limits.gaps, 2u);
  EXPECT_EQ(record->header.node.limits.references, PeerLimits{}.references);
  EXPECT_EQ(record->header.node.limits.served_bytes, 4u);
  EXPECT_EQ(record->header.node.limits.gatherings, 3u);
  EXPECT_EQ(record->header.node.mutants, header().node.mutants);
  ASSERT_EQ(record->items.size(), 6u);
  const auto& posted = std::get<Posted>(record->items[0]);
  EXPECT_EQ(posted.from, (Source{Source::Kind::execution, 9}));
  EXPECT_EQ(posted.code, 0x1234567890abcdefu);
  ASSERT_EQ(posted.readings.size(), 2u);
  EXPECT_EQ(posted.readings[0].nanoseconds, 5);
  EXPECT_EQ(posted.readings[1].kind, Reading::Kind::may_not_park);
  EXPECT_EQ(std::get<Read>(record->items[1]).value, 12u);
  EXPECT_EQ(std::get<Outcome>(record->items[2]).digests, (std::vector<uint64_t>{1, 2, UINT64_MAX}));
  const auto& lost = std::get<PeerLost>(record->items[3]);
  EXPECT_EQ(lost.why.chain, (std::vector<std::string>{"x"}));
  EXPECT_TRUE(lost.closed_by_peer);
  EXPECT_EQ(std::get<Ended>(record->items[5]).failure->text, "late");
  EXPECT_EQ(std::get<Ended>(record->items[5]).failure->kind, kLastErrorKind);
}

TEST_F(RecordFile, GivesBackAFrameWithItsTensors) {
  std::string first(100, 'a');
  std::string second(1, 'b');
  auto body = std::make_shared<FrameBody>();
  body->envelope = "envelope";
  for (std::string* bytes : {&first, &second})
    body->segments.push_back(
        {.data = reinterpret_cast<std::byte*>(bytes->data()), .bytes = bytes->size()});
  const Frame frame{{.source = {3}, .destination = {4}, .sequence = 300, .acknowledged = 299},
                    body};
  std::string bytes;
  append_bytes(WorkerId{1}, frame, bytes);
  const std::vector<std::string_view> parts = {bytes, first, second};
  create()->append(parts);
  const auto record = read_record(path_).or_throw();
  const auto& came = std::get<FrameReceived>(record->items.at(0));
  EXPECT_EQ(came.peer, WorkerId{1});
  EXPECT_EQ(came.header.sequence, 300u);
  EXPECT_EQ(came.header.destination, Incarnation{4});
  EXPECT_EQ(came.envelope, "envelope");
  ASSERT_EQ(came.segments.size(), 2u);
  EXPECT_EQ(came.segments[0].bytes, first);
  EXPECT_EQ(came.segments[1].bytes, second);
}

TEST_F(RecordFile, IsRefusedIfItIsCutShortAnywhere) {
  // Goal: one clear line, never a crash and never half a record. Method: every length.
  write_some();
  const std::string whole = content();
  for (size_t size = 0; size < whole.size(); ++size) {
    replace(whole.substr(0, size));
    const std::string text = complaint();
    ASSERT_TRUE(text.starts_with(path_ + ": is ")) << size << " " << text;
    ASSERT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST_F(RecordFile, IsRefusedIfAnyOfItsBitsHasFlipped) {
  // Goal: what was written is what is read. Method: a bit of each byte that counts.
  write_some();
  const std::string whole = content();
  Preface preface{};
  std::memcpy(&preface, whole.data(), sizeof preface);
  const size_t end = preface.ring_offset + preface.written;
  for (size_t at = 0; at < end; ++at) {
    const bool counts = at < kTextOffset + preface.text_bytes
                            ? at < sizeof(Preface) || at >= kTextOffset
                            : at >= preface.ring_offset;
    if (!counts) continue;
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    replace(flipped);
    const std::string text = complaint();
    ASSERT_TRUE(text.starts_with(path_ + ": ")) << at << " " << text;
  }
}

TEST_F(RecordFile, ThatHasLostItsBeginningSaysHowLargeItShouldHaveBeen) {
  const auto file = create();
  while (file->written() <= kRingBytesMin) append(*file, Outcome{std::vector<uint64_t>(20)});
  EXPECT_EQ(complaint(), path_ + ": has lost its beginning: of " + std::to_string(file->written()) +
                             " bytes it holds the last 4096; record again with a larger "
                             "--record-size");
  // Items that are larger than the whole ring change nothing of it.
  append(*file, Outcome{std::vector<uint64_t>(10'000)});
  EXPECT_NE(complaint().find("has lost its beginning"), std::string::npos);
}

TEST_F(RecordFile, FillsItsRingToTheLastByte) {
  const auto file = create();
  while (file->written() + 200 < kRingBytesMin) append(*file, Outcome{std::vector<uint64_t>(20)});
  const uint64_t left = kRingBytesMin - file->written();
  const std::string last = std::string(1, '\x08') + std::string(left - sizeof(ItemFrame) - 1, 'x');
  const std::string_view part = last;
  file->append({&part, 1});
  EXPECT_EQ(file->written(), kRingBytesMin);
  // Complete, and so it is read; but that is no item.
  EXPECT_NE(complaint().find("is damaged"), std::string::npos);
}

TEST_F(RecordFile, OfAnotherKindOrVersionIsRefused) {
  replace("run storm --seed 1\nend\n");
  EXPECT_EQ(complaint(), path_ + ": is no record of a worker");
  EXPECT_FALSE(looks_like_record(path_));
  write_some();
  EXPECT_TRUE(looks_like_record(path_));
  std::string whole = content();
  whole[offsetof(Preface, version)] = 9;
  replace(whole);
  EXPECT_EQ(complaint(), path_ + ": is a record of version 9; this program reads version 5");
  EXPECT_EQ(read_record("/no/such/file").ok(), false);
  EXPECT_FALSE(looks_like_record("/no/such/file"));
}

TEST_F(RecordFile, ThatCannotBeMadeSaysWhy) {
  const auto made = RingFile::create("/no/such/folder/x.record", "{}", kRingBytesMin);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(Result<std::unique_ptr<RingFile>>(
                RingFile::create("/no/such/folder/x.record", "{}", kRingBytesMin))
                .error()
                .text,
            "the record /no/such/folder/x.record cannot be written: No such file or directory");
}

}  // namespace
}  // namespace rehearsal::record
