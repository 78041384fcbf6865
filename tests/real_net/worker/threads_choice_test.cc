#include "real_net/worker/threads_choice.h"

#include <gtest/gtest.h>

namespace rehearsal::real {
namespace {

Environment with_threads(const std::optional<std::string>& value) {
  return [value](const std::string& name) {
    return name == "REHEARSAL_WORKER_THREADS" ? value : std::nullopt;
  };
}

TEST(ThreadsChoice, TheOptionWinsOverTheVariableAndThatOverTheDefault) {
  EXPECT_EQ(choose_worker_threads(0, with_threads("7")).or_throw(), 0u);
  EXPECT_EQ(choose_worker_threads({}, with_threads("0")).or_throw(), 0u);
  EXPECT_EQ(choose_worker_threads({}, with_threads("1024")).or_throw(), 1024u);
  EXPECT_GE(choose_worker_threads({}, with_threads({})).or_throw(), 2u);
}

TEST(ThreadsChoice, AWrongOneIsToldInOneLine) {
  for (const std::string wrong : {"-1", "1025", "2x", " 2", "many", "4294967296"}) {
    const Result<uint32_t> chosen = choose_worker_threads({}, with_threads(wrong));
    ASSERT_FALSE(chosen.ok()) << wrong;
    EXPECT_EQ(chosen.error().text, "REHEARSAL_WORKER_THREADS=" + wrong +
                                       ": type a number from 0 (functions run on the main thread, "
                                       "while it waits) to 1024");
  }
}

}  // namespace
}  // namespace rehearsal::real
