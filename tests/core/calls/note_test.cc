#include "core/api/note.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "core/base/hash.h"
#include "tests/core/calls/call_fixture.h"

namespace rehearsal {
namespace {

enum class Color : uint8_t { red, green };

struct Point {
  int64_t x = 0;
  double y = 0;
  std::string name;
  friend void describe(Point& point, auto&& fields) { fields(point.x, point.y, point.name); }
};

// Counts how often it was made text.
struct Shown {
  int* times;
  friend std::ostream& operator<<(std::ostream& out, const Shown& shown) {
    ++*shown.times;
    return out << "shown";
  }
};

struct Throwing {
  friend std::ostream& operator<<(std::ostream&, const Throwing&) {
    throw std::domain_error("no text");
  }
};

struct Named {
  friend std::string to_string(const Named&) { return "named"; }
};

template <class T>
std::string text_of(const T& value) {
  return note_value(value).text;
}

TEST(NoteValue, EveryKindOfValueHasItsText) {
  // Goal: what a program has at hand can be noted as it is. Method: a value of each kind.
  EXPECT_EQ(text_of(7), "7");
  EXPECT_EQ(text_of(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(text_of(0.1), "0.1");
  EXPECT_EQ(text_of(0.1F), "0.1");
  EXPECT_EQ(text_of(true), "true");
  EXPECT_EQ(text_of('x'), "x");
  EXPECT_EQ(text_of("text"), "text");
  EXPECT_EQ(text_of(std::string("text")), "text");
  EXPECT_EQ(text_of(std::chrono::milliseconds(1500)), "1.5");
  EXPECT_EQ(text_of(Color::green), "1");
  EXPECT_EQ(text_of(std::optional<int>(3)), "3");
  EXPECT_EQ(text_of(std::optional<int>()), "none");
  EXPECT_EQ(text_of(std::vector<double>{0.5, 2}), "[0.5, 2]");
  EXPECT_EQ(text_of(std::vector<int>(40, 1)).size(), std::string("[]").size() + 32 * 3 + 3);
  EXPECT_EQ(text_of(Point{1, 2.5, "p"}), "{1, 2.5, p}");
  EXPECT_EQ(text_of(Named{}), "named");
  EXPECT_EQ(text_of(WorkerId{3}), "3");
}

TEST(NoteValue, ATensorIsItsNumbersIfTheyAreFew) {
  // Goal: a loss is a number, a gradient of a layer its shape. Method: tensors of several sizes.
  const at::Tensor loss = at::full({1}, 0.25).requires_grad_();
  EXPECT_EQ(text_of(loss), "0.25");
  EXPECT_TRUE(note_value(loss).is_number);
  EXPECT_EQ(text_of(at::arange(4).reshape({2, 2})), "Long[2, 2] {0, 1, 2, 3}");
  EXPECT_EQ(text_of(at::zeros({4, 5})), "Float[4, 5]");
  EXPECT_EQ(text_of(at::zeros({0})), "Float[0] {}");
  EXPECT_EQ(text_of(at::full({1}, true)), "true");
  EXPECT_EQ(text_of(at::full({2}, c10::complex<double>(1, -2))),
            "ComplexFloat[2] {(1, -2), (1, -2)}");
  EXPECT_EQ(text_of(at::Tensor()), "undefined");
  EXPECT_FALSE(note_value(at::zeros({2})).is_number);
}

TEST(NoteValue, OnlyFiniteNumbersMakeACurve) {
  // Goal: no trace has a point that cannot be drawn. Method: each kind of number, and others.
  EXPECT_TRUE(note_value(1).is_number);
  EXPECT_TRUE(note_value(1.5).is_number);
  EXPECT_TRUE(note_value(std::chrono::seconds(2)).is_number);
  EXPECT_FALSE(note_value(std::numeric_limits<double>::quiet_NaN()).is_number);
  EXPECT_FALSE(note_value(std::numeric_limits<double>::infinity()).is_number);
  EXPECT_FALSE(note_value("1").is_number);
  EXPECT_FALSE(note_value(true).is_number);
}

int64_t serve(CallContext& context, int64_t value) {
  context.note("served", value);
  return value;
}

class NoteTest : public CallFixture {
 protected:
  void SetUp() override { registry.function("serve", &serve); }
};

TEST_F(NoteTest, IsAnEventOfTheExecutionThatSaysIt) {
  // Goal: name, value, its digest, and whose it is. Method: a main and a function that it calls.
  begin();
  a().calls.note("phase", "warm-up");
  EXPECT_EQ(a().calls.rpc_sync("b", &serve, int64_t{5}), 5);
  const auto notes = a().trace.all(EventKind::note);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].text, "phase");
  EXPECT_EQ(notes[0].value, "warm-up");
  EXPECT_EQ(notes[0].event.number, 0u);
  EXPECT_EQ(notes[0].event.digest, hash_text("warm-up"));
  EXPECT_EQ(notes[0].event.id, a().main->started_by());
  const auto served = b().trace.all(EventKind::note);
  ASSERT_EQ(served.size(), 1u);
  EXPECT_EQ(served[0].text, "served");
  EXPECT_EQ(served[0].value, "5");
  EXPECT_EQ(served[0].event.number, 1u);
  EXPECT_EQ(served[0].event.id, b().trace.all(EventKind::call_executed).at(0).event.id);
}

TEST_F(NoteTest, ALongOneIsCutBetweenLetters) {
  // Goal: nobody's log grows without end, and no text is broken. Method: a name and a value of
  // letters of two bytes, beyond the limit.
  begin();
  std::string text = "x";
  for (int i = 0; i < 600; ++i) text += "é";
  a().calls.note(text, text);
  const auto notes = a().trace.all(EventKind::note);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].value, text.substr(0, 999) + "…");
  EXPECT_EQ(notes[0].text, notes[0].value);
  EXPECT_EQ(notes[0].event.digest, hash_text(text));
}

TEST_F(NoteTest, NoTextIsMadeWhereNobodyListens) {
  // Goal: a note that nobody hears costs next to nothing. Method: the value counts how often it is
  // made text, at a node whose trace says that it hears none, and at one that hears.
  int times = 0;
  const auto strand_with = [this](doubles::RecordingTrace& trace) {
    auto runtime = std::make_shared<doubles::TestRuntime>(world);
    return std::make_shared<NodeStrand>(runtime, runtime.get(), &trace, WorkerId{0}, "x", Seed{1});
  };
  for (const bool heard : {false, true}) {
    doubles::RecordingTrace trace;
    trace.notes_are_heard = heard;
    const auto strand = strand_with(trace);
    const Calls calls(std::make_shared<Caller>(strand, std::make_shared<FunctionRegistry>(),
                                               std::vector<std::string>{"x"}, Duration(0)),
                      nullptr);
    calls.note("state", Shown{&times});
    EXPECT_EQ(times, heard ? 1 : 0);
    EXPECT_EQ(trace.count(EventKind::note), heard ? 1u : 0u);
    strand->close({.kind = ErrorKind::node_stopped, .text = "ended"});
  }
}

TEST_F(NoteTest, AnExceptionOfItsTextIsTheCallersAndNothingIsNoted) {
  // Goal: user code runs on the caller's stack, never on the strand. Method: an operator<< that
  // throws.
  begin();
  EXPECT_THROW(a().calls.note("bad", Throwing{}), std::domain_error);
  EXPECT_EQ(a().trace.count(EventKind::note), 0u);
}

}  // namespace
}  // namespace rehearsal
