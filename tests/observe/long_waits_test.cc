#include "observe/log/long_waits.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace rehearsal::observe {
namespace {

using namespace std::chrono_literals;

WaitViews::Stack waits(uint64_t path, Duration waited) {
  WaitViews::Stack stack;
  stack.path = {path, path};
  stack.label = "take";
  stack.what = "boost::fibers::mutex::lock(), held by put";
  stack.holder = Hash128{9, 9};
  stack.waited = waited;
  return stack;
}

// How many lines of the text tell of a wait.
int told(const std::ostringstream& text) {
  int count = 0;
  const std::string all = text.str();
  for (size_t at = 0; (at = all.find(" event=waits_long ", at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(LongWaits, AreToldOnceEach) {
  // Goal: a line with what is waited for, and no second one of the same wait. Method: looks at one
  // that gets longer, then at another wait of the same execution.
  std::ostringstream text;
  Log log(LogLevel::warn, "ps", text);
  LongWaits long_waits(log, 5s);
  long_waits.look({waits(1, 4s)});
  EXPECT_EQ(told(text), 0);
  long_waits.look({waits(1, 5s), waits(2, 1s)});
  EXPECT_NE(text.str().find("event=waits_long what=take in=\"boost::fibers::mutex::lock(), held by "
                            "put\" for_seconds=5"),
            std::string::npos)
      << text.str();
  long_waits.look({waits(1, 6s), waits(2, 2s)});
  EXPECT_EQ(told(text), 1);
  long_waits.look({waits(1, 1s), waits(2, 7s)});
  EXPECT_EQ(told(text), 2);
  long_waits.look({waits(1, 5s)});
  EXPECT_EQ(told(text), 3);
}

TEST(LongWaits, ForWorkAreNoWarning) {
  // Goal: a worker that has nothing to do does not fill its log. Method: a wait that nobody holds
  // up, and one for an answer.
  std::ostringstream text;
  Log log(LogLevel::warn, "ps", text);
  LongWaits long_waits(log, 5s);
  WaitViews::Stack for_work = waits(1, 60s);
  for_work.holder.reset();
  WaitViews::Stack for_an_answer = waits(2, 60s);
  for_an_answer.waited.reset();
  long_waits.look({for_work, for_an_answer});
  EXPECT_EQ(told(text), 0);
}

}  // namespace
}  // namespace rehearsal::observe
