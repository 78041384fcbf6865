// The page in a real browser: it opens, shows every event, answers mouse and keyboard, filters, is
// light and dark, asks for nothing else, and complains of nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <set>

#include "sim/cluster.h"
#include "sim/explain/html_page.h"
#include "tests/sim/adding_program.h"
#include "tests/sim/explain/entries.h"
#include "tests/sim/explain/nested_program.h"
#include "tests/sim/explain/page/browser.h"
#include "tests/sim/explain/run_with_pass.h"
#include "tests/temporary_folder.h"

namespace rehearsal::sim {
namespace {

// A server that crashes and comes back while two clients call it over bad links.
const Chronicle& stormy_run() {
  static const Chronicle chronicle = [] {
    History history;
    ClusterOptions options{.faults = FaultLevel::hostile,
                           .restart = Restart::amnesia,
                           .crash_points = {{WorkerId{0}, 60}}};
    options.history = &history;
    const Program program = adding_program();
    static_cast<void>(Cluster(Seed{5}, program, options).try_run());
    Chronicle made = chronicle_of(history);
    made.failed_at = made.moments.size() * 2 / 3;
    return made;
  }();
  return chronicle;
}

Subject stormy_subject() {
  const auto taken = std::find_if(stormy_run().messages.begin(), stormy_run().messages.end(),
                                  [](const MessageTrip& trip) { return trip.arrived; });
  return {
      .title = "adding, seed 5",
      .failure = "at-most-once: frame 10 was handled </script> twice",
      .command = "rehearsal run adding --seed 5",
      .critical = CriticalPair{
          .first = taken->sent, .second = taken->arrived, .verdict = "A before B <b>fails</b>"}};
}

class PageTest : public testing::Test {
 protected:
  // One browser for all tests: starting it takes the longest.
  static void SetUpTestSuite() { browser_ = std::make_unique<Browser>(); }
  static void TearDownTestSuite() { browser_.reset(); }

  void SetUp() override {
    complaints_before_ = browser().complaints().size();
    browser().prefer_dark(false);
  }
  void TearDown() override {
    for (size_t i = complaints_before_; i < browser().complaints().size(); ++i)
      ADD_FAILURE() << browser().complaints()[i];
  }

  static Browser& browser() { return *browser_; }

  void open(const Chronicle& chronicle, const Subject& subject) {
    const TemporaryFolder folder;
    const std::string file = folder.file("page.html");
    std::ofstream(file) << html_page(chronicle, subject);
    browser().open(file);
  }
  void open_stormy() { open(stormy_run(), stormy_subject()); }
  // Every event, the shutdown unfolded.
  void open_all_of_stormy() {
    open_stormy();
    browser().click("#story-switch button:nth-child(1)");
    if (browser().evaluate("document.getElementById('fold') !== null || filter.folded") == true)
      browser().press("d");
  }

  static std::string text_of(const std::string& selector) {
    return browser()
        .evaluate("document.querySelector(" + Browser::Json(selector).dump() + ").textContent")
        .get<std::string>();
  }
  static int64_t selected() {
    return browser()
        .evaluate("Number(document.querySelector('.row.selected')?.dataset.event ?? -1)")
        .get<int64_t>();
  }
  static size_t rows_in_page() {
    return browser().evaluate("document.querySelectorAll('.row').length").get<size_t>();
  }
  // Every event that scrolling from top to bottom brings into view.
  static std::set<size_t> scroll_through() {
    std::set<size_t> seen;
    browser().evaluate("scroller.scrollTop = 0");
    while (true) {
      const Browser::Json rows = browser().evaluate(
          "[...document.querySelectorAll('.row')].map((row) => Number(row.dataset.event))");
      for (const auto& row : rows) seen.insert(row.get<size_t>());
      if (browser()
              .evaluate("scroller.scrollTop + scroller.clientHeight >= scroller.scrollHeight - 1")
              .get<bool>())
        return seen;
      browser().evaluate("scroller.scrollTop += scroller.clientHeight - 60");
    }
  }
  static size_t count(const std::function<bool(const Moment&)>& holds) {
    const auto& moments = stormy_run().moments;
    return static_cast<size_t>(std::count_if(moments.begin(), moments.end(), holds));
  }
  // The first thing that the worker of a moment holds after it: "owners".
  static std::string first_table_of(size_t number) {
    const auto& moments = stormy_run().moments;
    for (size_t i = number + 1; i-- > 0;) {
      const std::string& tables = moments[i].tables;
      if (moments[i].entry.worker == moments[number].entry.worker && !tables.empty())
        return tables.substr(0, tables.find_last_of(' ', tables.find(',')));
    }
    return "no tables";
  }
  static std::string count_text(size_t shown) {
    return std::to_string(shown) + " of " + std::to_string(stormy_run().moments.size()) + " events";
  }

 private:
  static std::unique_ptr<Browser> browser_;
  size_t complaints_before_ = 0;
};

std::unique_ptr<Browser> PageTest::browser_;

TEST_F(PageTest, ShowsEveryEventOfTheRunAndWhatFailed) {
  open_stormy();
  EXPECT_EQ(text_of("#title"), "adding, seed 5");
  EXPECT_EQ(text_of("#badge"), "FAILED");
  EXPECT_EQ(text_of("#failure"), stormy_subject().failure);
  EXPECT_EQ(text_of("#command-text"), stormy_subject().command);
  EXPECT_TRUE(text_of("#critical").starts_with("A before B <b>fails</b>\n  A: it sends "));
  EXPECT_EQ(text_of("#lanes"), "serverclient0client1");
  open_all_of_stormy();
  EXPECT_EQ(text_of("#count"), std::to_string(stormy_run().moments.size()) + " events");
  const std::set<size_t> seen = scroll_through();
  EXPECT_EQ(seen.size(), stormy_run().moments.size());
  EXPECT_EQ(*seen.rbegin(), stormy_run().moments.size() - 1);
}

TEST_F(PageTest, OpensAtTheCriticalPairWithTheEventsThatMatterMost) {
  open_stormy();
  const size_t first = stormy_subject().critical->first;
  const auto failed = static_cast<int64_t>(*stormy_run().failed_at);
  EXPECT_TRUE(selected() == static_cast<int64_t>(first) || selected() == failed) << selected();
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('#event-" + std::to_string(first) +
                               "').length"),
            1);
  EXPECT_LT(scroll_through().size(), 200u);
  Subject without = stormy_subject();
  without.critical.reset();
  open(stormy_run(), without);
  EXPECT_EQ(selected(), failed);
}

TEST_F(PageTest, TheShutdownIsOneRowUntilItIsOpened) {
  HandMade made({"ps", "trainer"});
  made.event(EventKind::api_call, 1, "0000000a#1", "add");
  made.at(10).send(0, 1, 1, "", kResponse).take(1, 0, 1, "", kResponse).event(EventKind::timer, 1);
  open(chronicle_of(made.history), {.title = "t"});
  EXPECT_EQ(text_of("#count"), "1 of 4 events");
  EXPECT_EQ(rows_in_page(), 1u);
  EXPECT_EQ(text_of("#fold"), "… shutdown, 1 message");
  browser().click("#fold");
  EXPECT_EQ(text_of("#count"), "4 events");
  EXPECT_EQ(rows_in_page(), 4u);
  EXPECT_EQ(browser().evaluate("document.getElementById('fold')"), nullptr);
  browser().press("d");
  EXPECT_EQ(rows_in_page(), 1u);
  browser().evaluate("select(3)");  // as a jump from another event does
  EXPECT_EQ(selected(), 3);
  EXPECT_EQ(rows_in_page(), 4u);
}

TEST_F(PageTest, SaysWhereItWasThrownAndByWhichCalls) {
  // Goal: main, call, nested call, throw, with source lines. Method: a program that fails without a
  // fault.
  History history;
  ClusterOptions options{.faults = FaultLevel::none};
  options.history = &history;
  const Program program = nested::program();
  static_cast<void>(Cluster(Seed{1}, program, options).try_run());
  open(chronicle_of(history), {.title = "nested", .failure = "main: worker 'trainer': …"});
  const auto at = [](const char* function, int line) {
    return std::string(function) + " nested_program.h:" + std::to_string(line);
  };
  std::string thrown = text_of("#thrown");
  for (size_t from = thrown.find('/'); from != std::string::npos; from = thrown.find('/'))
    thrown.erase(from, thrown.find("nested_program.h", from) - from);
  EXPECT_TRUE(thrown.starts_with("thrown at store, in get: std::out_of_range: map::at show" +
                                 at("look_up", nested::kThrows)))
      << thrown;
  EXPECT_NE(thrown.find("then at ps, in update show" + at("update", nested::kPsCalls)),
            std::string::npos)
      << thrown;
  EXPECT_TRUE(thrown.ends_with("then at trainer show" + at("trainer", nested::kTrainerCalls)))
      << thrown;
  const std::string panel = text_of("#panel");
  EXPECT_TRUE(panel.starts_with("trainer throws again: std::out_of_range: map::at")) << panel;
  EXPECT_NE(panel.find("Thrown intrainer /"), std::string::npos) << panel;
  EXPECT_EQ(browser().evaluate("[...document.querySelectorAll('.mark')].map((m) => m.textContent)"),
            (Browser::Json{"THROWN HERE", "FAILS HERE"}));
  browser().click("#thrown button");
  EXPECT_TRUE(text_of("#panel").starts_with("store throws std::out_of_range: map::at"));
}

TEST_F(PageTest, ARowSaysWhenWhereAndWhat) {
  open_all_of_stormy();
  browser().press("Home");
  const Moment& first = stormy_run().moments.front();
  const std::string text = text_of(".row.selected");
  EXPECT_NE(text.find("0.000"), std::string::npos) << text;
  EXPECT_NE(text.find(place_of(stormy_run(), first)), std::string::npos) << text;
  EXPECT_NE(text.find(rehearsal::sim::text_of(stormy_run(), first)), std::string::npos) << text;
}

TEST_F(PageTest, AClickShowsTheMessageItsIdsTablesAndCauses) {
  open_all_of_stormy();
  // Method: a call that is taken, found by its text, clicked by the mouse.
  const auto& moments = stormy_run().moments;
  const auto taken = std::find_if(moments.begin(), moments.end(), [](const Moment& moment) {
    return moment.entry.event == EventKind::frame && moment.entry.detail.starts_with("add(");
  });
  ASSERT_NE(taken, moments.end());
  const auto number = static_cast<size_t>(taken - moments.begin());
  browser().evaluate("scroller.scrollTop = " + std::to_string(number) + " * view.rowHeight - 100");
  browser().click("#event-" + std::to_string(number));
  EXPECT_EQ(selected(), static_cast<int64_t>(number));
  const std::string panel = text_of("#panel");
  for (const std::string& part :
       {taken->entry.id, taken->entry.detail, std::string("frame"), std::string("Causes"),
        std::string("number ") + std::to_string(taken->entry.number), std::string("arrived after"),
        std::string("What server holds after it"), first_table_of(number)})
    EXPECT_NE(panel.find(part), std::string::npos) << part << "\n" << panel;
  const size_t sent = stormy_run().messages[*taken->message].sent;
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('#panel [data-jump=\"" +
                               std::to_string(sent) + "\"]').length"),
            2);  // as the other end and as a cause
  browser().click("#panel [data-jump]");
  EXPECT_EQ(selected(), static_cast<int64_t>(sent));
}

TEST_F(PageTest, TheKeyboardMovesOverEventsWorkersAndMessages) {
  open_all_of_stormy();
  const auto last = static_cast<int64_t>(stormy_run().moments.size()) - 1;
  browser().press("Home");
  EXPECT_EQ(selected(), 0);
  browser().press("ArrowDown");
  browser().press("j");
  EXPECT_EQ(selected(), 2);
  browser().press("k");
  EXPECT_EQ(selected(), 1);
  browser().press("End");
  EXPECT_EQ(selected(), last);
  browser().press("ArrowDown");
  EXPECT_EQ(selected(), last);
  browser().press("f");
  EXPECT_EQ(selected(), static_cast<int64_t>(*stormy_run().failed_at));
  browser().press("a");
  const CriticalPair pair = *stormy_subject().critical;
  EXPECT_EQ(selected(), static_cast<int64_t>(pair.first));
  browser().press("m");
  EXPECT_EQ(selected(), static_cast<int64_t>(*pair.second));
  browser().press("c");
  EXPECT_EQ(selected(), static_cast<int64_t>(pair.first));
  browser().press("b");
  EXPECT_EQ(selected(), static_cast<int64_t>(*pair.second));
  browser().press("ArrowLeft");
  const auto& moments = stormy_run().moments;
  EXPECT_LT(selected(), static_cast<int64_t>(*pair.second));
  EXPECT_EQ(moments[static_cast<size_t>(selected())].entry.worker,
            moments[*pair.second].entry.worker);
  browser().press("Escape");
  EXPECT_EQ(selected(), -1);
  browser().press("?");
  EXPECT_EQ(browser().evaluate("document.getElementById('help').open"), true);
}

TEST_F(PageTest, FiltersByWorkerKindAndText) {
  open_all_of_stormy();
  browser().click("#worker-filter button:nth-child(2)");  // client0 off
  EXPECT_EQ(text_of("#count"), count_text(count([](const Moment& moment) {
              const Entry& entry = moment.entry;
              return entry.worker != 1 || (entry.kind == EntryKind::broken && entry.peer != 1);
            })));
  EXPECT_EQ(text_of("#lanes"), "serverclient1");
  browser().click("#worker-filter button:nth-child(2)");
  EXPECT_EQ(text_of("#count"), std::to_string(stormy_run().moments.size()) + " events");
  browser().click("#kind-filter button:nth-child(1)");  // messages off
  EXPECT_EQ(text_of("#count"), count_text(count([](const Moment& moment) {
              return !name_of(moment).starts_with("frame");
            })));
  browser().click("#kind-filter button:nth-child(1)");
  browser().press("/");
  browser().type("CRASHES");
  EXPECT_EQ(text_of("#count"), count_text(1));
  EXPECT_EQ(rows_in_page(), 1u);
  browser().press("Escape");
  EXPECT_EQ(text_of("#count"), std::to_string(stormy_run().moments.size()) + " events");
  browser().press("s");
  EXPECT_LT(scroll_through().size(), 200u);
  EXPECT_TRUE(scroll_through().contains(*stormy_run().failed_at));
}

TEST_F(PageTest, StreamsOfDevicesHaveLanesWhileTheyAreShown) {
  HandMade made({"ps", "trainer"});
  const auto step = [&](StreamNote::Step what, uint64_t stream) {
    const StreamNote note{.step = what, .device = 1, .stream = stream};
    made.add({.kind = EntryKind::device, .worker = 0, .number = 7, .text = "op", .stream = note});
  };
  made.event(EventKind::timer, 1);
  step(StreamNote::Step::given, 3);
  step(StreamNote::Step::done, 3);
  step(StreamNote::Step::went_on, 4);
  made.event(EventKind::timer, 1);
  open(chronicle_of(made.history), {.title = "two streams"});
  EXPECT_EQ(text_of("#lanes"), "pssim:1/3sim:1/4trainer");
  EXPECT_EQ(rows_in_page(), 5u);
  browser().click("#kind-filter button:nth-child(1)");  // devices off
  EXPECT_EQ(text_of("#lanes"), "pstrainer");
  EXPECT_EQ(rows_in_page(), 2u);
  browser().click("#kind-filter button:nth-child(1)");
  browser().click("#worker-filter button:nth-child(1)");  // ps off, and with it its streams
  EXPECT_EQ(text_of("#lanes"), "trainer");
}

TEST_F(PageTest, WhatDidNotHappenBeforeTheSelectedEventIsDimmed) {
  open_all_of_stormy();
  browser().press("f");
  const size_t number = *stormy_run().failed_at;
  const std::vector<bool> past = causal_past(stormy_run(), number);
  const Browser::Json far = browser().evaluate(
      "[...document.querySelectorAll('.row')].map((row) => [Number(row.dataset.event), "
      "row.classList.contains('far')])");
  ASSERT_GT(far.size(), 10u);
  for (const auto& row : far) {
    const auto event = row.at(0).get<size_t>();
    EXPECT_EQ(row.at(1).get<bool>(), event > number || !past[event]) << event;
  }
}

TEST_F(PageTest, ZoomsByKeyAndButtonAndKeepsThePlace) {
  open_stormy();
  const size_t before = rows_in_page();
  browser().press("-");
  browser().click("#zoom-out");
  const size_t small = rows_in_page();
  EXPECT_GT(small, before);
  EXPECT_GE(selected(), 0);
  browser().press("+");
  browser().click("#zoom-in");
  EXPECT_NEAR(static_cast<double>(rows_in_page()), static_cast<double>(before), 1);  // half a row
}

TEST_F(PageTest, IsLightOrDarkAsTheReaderPrefers) {
  const std::string ground = "getComputedStyle(document.body).backgroundColor";
  const std::string ink = "colors.ground + colors.call";
  open_stormy();
  EXPECT_EQ(browser().evaluate(ground), "rgb(255, 255, 255)");
  const Browser::Json light = browser().evaluate(ink);
  browser().prefer_dark(true);
  EXPECT_EQ(browser().evaluate(ground), "rgb(20, 23, 28)");
  EXPECT_NE(browser().evaluate(ink), light);
  browser().prefer_dark(false);
  EXPECT_EQ(browser().evaluate(ground), "rgb(255, 255, 255)");
  EXPECT_EQ(browser().evaluate(ink), light);
}

TEST_F(PageTest, DrawsLanesAndArrows) {
  // Goal: the picture is there, not only the rows. Method: count the canvas's coloured dots.
  open_stormy();
  const std::string dots =
      "(() => { const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, "
      "canvas.height); let n = 0; for (let i = 3; i < data.length; i += 4) n += data[i] > 0; "
      "return n; })()";
  EXPECT_GT(browser().evaluate(dots).get<int64_t>(), 3000);
  browser().press("/");
  browser().type("nothing is called like this");
  EXPECT_EQ(rows_in_page(), 0u);
}

// ---- backward passes ----------------------------------------------------------------

TEST_F(PageTest, ThePanelSaysWhatEachWorkerOfAPassWaitsFor) {
  // Goal: send functions, messages and waves, from beginning to end. Method: a pass made by hand,
  // event by event.
  open(run_with_pass(/*fast=*/false), {.title = "t"});
  const auto said_at = [](size_t moment) {
    browser().evaluate("select(" + std::to_string(moment) + ")");
    return browser().evaluate(
        "[...document.querySelectorAll('#pass dt, #pass dd')].map((e) => e.textContent)");
  };
  const auto drawn = [](const char* what) {
    return browser().evaluate(std::string("[...document.querySelectorAll('[data-") + what +
                              "]')].map((e) => e.dataset." + what + ")");
  };
  using Texts = Browser::Json;
  const std::string nothing = "waits for no answer";
  EXPECT_EQ(said_at(3), Texts::array());
  EXPECT_EQ(said_at(4), (Texts{"trainer", "has gradients for 0 of 1 send function"}));
  EXPECT_TRUE(
      text_of("#pass").starts_with("Backward pass 2 of context 0000000c#1, started by trainer"));
  EXPECT_EQ(said_at(8),
            (Texts{"ps", "has gradients for 0 of 1 send function; has to get some for 0000000b#7",
                   "waits for trainer to answer marks of 0000000a#5, which are on the way",
                   "trainer", "has gradients for 0 of 1 send function",
                   "waits for ps to answer marks of 0000000b#7"}));
  EXPECT_EQ(drawn("arrow"), (Texts{"marks trainer ps 1", "marks ps trainer 1"}));
  EXPECT_EQ(drawn("worker"), (Texts{"ps runs", "trainer runs"}));
  EXPECT_EQ(said_at(17), (Texts{"ps", "waits for trainer to answer gradients of 0000000a#5",
                                "trainer", "waits for ps to answer gradients of 0000000b#7"}));
  EXPECT_EQ(drawn("arrow"), (Texts{"gradients trainer ps 1", "gradients ps trainer 1"}));
  EXPECT_EQ(said_at(23),
            (Texts{"ps", nothing, "trainer", "waits for ps to answer the wave 'is it complete?'"}));
  EXPECT_EQ(drawn("arrow"), (Texts{"waves trainer ps 1"}));
  EXPECT_EQ(said_at(26), (Texts{"ps", "has failed: no luck", "trainer", nothing}));
  EXPECT_EQ(said_at(27), (Texts{"ps", "has failed: no luck", "trainer", "has ended"}));
  EXPECT_EQ(drawn("worker"), (Texts{"ps failed", "trainer done"}));
  EXPECT_EQ(drawn("arrow"), Texts::array());
}

TEST_F(PageTest, InFastModeEverySendFunctionIsWaitedFor) {
  // Goal: no mark is needed. Method: the same pass, in FAST mode, before its first message.
  open(run_with_pass(/*fast=*/true), {.title = "t"});
  browser().evaluate("select(4)");
  EXPECT_EQ(browser().evaluate("document.querySelector('#pass dd').textContent"),
            "has gradients for 0 of 1 send function; has to get some for 0000000a#5");
  browser().evaluate("select(17)");
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('#pass dd').length"), 2);
}

TEST_F(PageTest, APassHasColoursALegendAndAFilter) {
  // Goal: gradients, marks and waves are told apart. Method: their buttons, rows and colours.
  open(run_with_pass(/*fast=*/false), {.title = "t"});
  EXPECT_EQ(browser().evaluate("[...document.querySelectorAll('.legend')].map((b) => "
                               "b.textContent)"),
            (Browser::Json{"gradients", "marks", "waves"}));
  EXPECT_EQ(browser().evaluate("new Set(['arrow', 'call', 'autograd', 'gradients', 'marks', "
                               "'waves', 'bad'].map((name) => colors[name])).size"),
            7);
  const auto styles = [](size_t moment) {
    return browser().evaluate("document.querySelector('#event-" + std::to_string(moment) +
                              " .what').className");
  };
  EXPECT_EQ(styles(0), "what call");
  EXPECT_EQ(styles(5), "what marks");
  EXPECT_EQ(styles(14), "what gradients");
  EXPECT_EQ(styles(22), "what waves");
  EXPECT_EQ(text_of("#count"), "28 events");
  browser().click(".legend.marks");
  EXPECT_EQ(text_of("#count"), "20 of 28 events");
  browser().click(".legend.marks");
  browser().press("p");
  EXPECT_EQ(text_of("#count"), "24 of 28 events");
  browser().press("p");
  EXPECT_EQ(text_of("#count"), "28 events");
}

TEST_F(PageTest, ALongRunIsNoLoad) {
  // Goal: what is not visible costs nothing. Method: 60,000 events of 8 workers; count elements.
  HandMade made({"w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"});
  for (uint32_t i = 0; i < 30'000; ++i) {
    const uint32_t from = i % 8;
    const uint32_t to = (i * 3 + 1) % 8 == from ? (from + 1) % 8 : (i * 3 + 1) % 8;
    made.at(i).send(from, to, i + 1, "0000000a#" + std::to_string(i)).take(to, from, i + 1);
  }
  open(chronicle_of(made.history), {.title = "long"});
  EXPECT_EQ(text_of("#badge"), "HOLDS");
  EXPECT_EQ(text_of("#count"), "60000 events");
  EXPECT_LT(browser().evaluate("document.querySelectorAll('*').length").get<int64_t>(), 1000);
  browser().press("End");
  EXPECT_EQ(selected(), 59'999);
  EXPECT_LT(rows_in_page(), 200u);
}

TEST_F(PageTest, UserTextIsTextOnly) {
  HandMade made({"<b>ps</b>", "trainer"});
  made.event(EventKind::mark, 0, "", "<img src=x onerror=\"document.title='taken'\">");
  made.event(EventKind::mark, 1, "", "</script><script>document.title='taken'</script><!--");
  open(chronicle_of(made.history), {.title = "<i>t</i>", .failure = "</script>\n\"'&"});
  browser().click("#story-switch button:nth-child(1)");
  EXPECT_EQ(text_of("#count"), "2 events");
  EXPECT_EQ(text_of("#title"), "<i>t</i>");
  EXPECT_EQ(browser().evaluate("document.title"), "<i>t</i> — failed");
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('img, b b, i').length"), 0);
}

}  // namespace
}  // namespace rehearsal::sim
