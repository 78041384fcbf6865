// The page in a real browser: it opens, shows every event, answers mouse and keyboard, filters, is
// light and dark, asks for nothing else, and complains of nothing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <set>

#include "sim/cluster.h"
#include "sim/explain/html_page.h"
#include "tests/sim/adding_program.h"
#include "tests/sim/explain/entries.h"
#include "tests/sim/explain/page/browser.h"

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
    const auto file =
        std::filesystem::temp_directory_path() / ("page_" + std::to_string(getpid()) + ".html");
    std::ofstream(file) << html_page(chronicle, subject);
    browser().open(file);
    std::filesystem::remove(file);
  }
  void open_stormy() { open(stormy_run(), stormy_subject()); }

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
  EXPECT_EQ(text_of("#count"), std::to_string(stormy_run().moments.size()) + " events");
  EXPECT_EQ(text_of("#lanes"), "serverclient0client1");
  EXPECT_EQ(selected(), static_cast<int64_t>(*stormy_run().failed_at));
  const std::set<size_t> seen = scroll_through();
  EXPECT_EQ(seen.size(), stormy_run().moments.size());
  EXPECT_EQ(*seen.rbegin(), stormy_run().moments.size() - 1);
}

TEST_F(PageTest, ARowSaysWhenWhereAndWhat) {
  open_stormy();
  browser().press("Home");
  const Moment& first = stormy_run().moments.front();
  const std::string text = text_of(".row.selected");
  EXPECT_NE(text.find("0.000"), std::string::npos) << text;
  EXPECT_NE(text.find(place_of(stormy_run(), first)), std::string::npos) << text;
  EXPECT_NE(text.find(rehearsal::sim::text_of(stormy_run(), first)), std::string::npos) << text;
}

TEST_F(PageTest, AClickShowsTheMessageItsIdsTablesAndCauses) {
  open_stormy();
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
  open_stormy();
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
  open_stormy();
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

TEST_F(PageTest, WhatDidNotHappenBeforeTheSelectedEventIsDimmed) {
  open_stormy();
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
  EXPECT_EQ(rows_in_page(), before);
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
  EXPECT_EQ(text_of("#count"), "2 events");
  EXPECT_EQ(text_of("#title"), "<i>t</i>");
  EXPECT_EQ(browser().evaluate("document.title"), "<i>t</i> — failed");
  EXPECT_EQ(browser().evaluate("document.querySelectorAll('img, b b, i').length"), 0);
}

}  // namespace
}  // namespace rehearsal::sim
