// Files of spans that a broken disk, or somebody else, has changed.
#include <gtest/gtest.h>

#include "observe/spans.h"
#include "tests/effort.h"
#include "tests/held_bytes.h"
#include "tests/mutations.h"

namespace rehearsal::observe {
namespace {

constexpr uint64_t kMutations = 4'000;

Span span_of(uint64_t ordinal, bool served, CallForm form) {
  const int64_t begin = static_cast<int64_t>(ordinal) * 1000;
  return {.call = {{7}, {1, 2}, ordinal / 2},
          .served = served,
          .form = form,
          .worker = served ? 0u : 1u,
          .peer = served ? 1u : 0u,
          .function = "add",
          .begin = Instant(Duration(begin)),
          .end = Instant(Duration(begin + (form == CallForm::remote ? 0 : 500))),
          .error = {}};
}

TEST(DamagedSpans, AreRefusedOrReadWhateverWasDoneToThem) {
  // Goal: an error or a file that can be merged and written again, and memory that is bounded.
  // Method: thousands of drawn changes of a file that has every kind of span.
  SpanFile file{{"ps", "trainer"}, {}, 5};
  file.spans = {span_of(2, false, CallForm::rpc_sync), span_of(3, true, {}),
                span_of(4, false, CallForm::remote), span_of(6, false, CallForm::rpc_async)};
  file.spans[0].error = ErrorKind::timeout;
  const std::string whole = perfetto_text(file);
  ASSERT_EQ(read_spans(whole).or_throw(), file);
  std::mt19937_64 random(9);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < tries(kMutations); ++i) {
    const std::string bad = mutated(whole, random);
    const HeldBytes held;
    const Result<SpanFile> read = read_spans(bad);
    ASSERT_LT(held.most_bytes(), 64 * bad.size() + (1 << 17)) << bad;
    if (!read.ok()) {
      ++refused;
      continue;
    }
    for (const auto& files : {std::vector{file, read.value()}, std::vector{read.value(), file}})
      if (const Result<SpanFile> merged = merge(files); merged.ok())
        ASSERT_TRUE(read_spans(perfetto_text(merged.value())).ok()) << bad;
  }
  EXPECT_GT(refused, tries(kMutations) / 2);
}

TEST(DamagedSpans, OfTimesThatNoClockCanSayAreRefused) {
  // Goal: no time is calculated with that has no room. Method: the ends of the numbers, and two
  // files whose shift would go beyond them.
  const Instant far{Duration(int64_t{1} << 60)};
  SpanFile file{{"ps", "trainer"}, {span_of(2, false, CallForm::rpc_sync)}};
  file.spans[0].begin = file.spans[0].end = far;
  EXPECT_TRUE(read_spans(perfetto_text(file)).ok());
  SpanFile other{file.names, {span_of(3, true, {}), span_of(9, true, {})}};
  other.spans[1].begin = other.spans[1].end = far;
  EXPECT_FALSE(merge({file, other}).ok());
  for (const Instant end : {Instant::max(), Instant::min(), far + Duration(1)}) {
    file.spans[0].begin = file.spans[0].end = end;
    EXPECT_FALSE(read_spans(perfetto_text(file)).ok());
  }
}

TEST(DamagedSpans, OfManySmallPartsHoldNoMoreThanAMultipleOfTheirSize) {
  for (const std::string& text :
       {std::string(100'000, '['), "[" + std::string(100'000, ' ') + "]", [] {
          std::string text = "[0";
          for (int i = 0; i < 50'000; ++i) text += ",[]";
          return text + "]";
        }()}) {
    const HeldBytes held;
    EXPECT_FALSE(read_spans(text).ok());
    EXPECT_LT(held.most_bytes(), 64 * text.size() + (1 << 17));
  }
}

}  // namespace
}  // namespace rehearsal::observe
