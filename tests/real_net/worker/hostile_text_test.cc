// Texts of another process, about itself or an error, may hold anything.
#include "tests/hostile_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

#include "core/api/worker.h"
#include "real_net/run_worker.h"
#include "tests/temporary_folder.h"
#include "tests/whole_file.h"

namespace rehearsal::real {
namespace {

void lie(const std::string& text) { throw std::runtime_error(text); }

// While it lives, standard error goes to a file.
class Told {
 public:
  Told() : before_(dup(STDERR_FILENO)) {
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~Told() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  [[nodiscard]] std::string text() const { return read_whole_file(path_); }
  [[nodiscard]] std::string store() const { return folder_.file("store"); }

 private:
  const TemporaryFolder folder_;
  const std::string path_ = folder_.file("log");
  const int before_;
};

WorkerOptions options_of(uint32_t rank, const std::string& store) {
  WorkerOptions options;
  options.placement = {.rank = rank, .world_size = 2, .rendezvous = "file://" + store};
  options.environment = [](const std::string&) { return std::nullopt; };
  options.observe.log = "debug";
  return options;
}

TEST(HostileText, OfAPeersErrorReachesNoLogAndNoExceptionsWhatAsItIs) {
  // Goal: what() and each line of the log are plain, and the text itself is what the callee threw.
  // Method: a function over TCP throws all there is; the log writes each call that fails.
  Told told;
  FunctionRegistry registry;
  registry.function("lie", &lie);
  Program program(registry);
  std::optional<Error> caught;
  std::string what;
  program.worker("server").worker("client", [&](Worker& worker) {
    worker.note(kHostileText, kHostileText);
    try {
      worker.rpc_sync("server", &lie, kHostileText);
    } catch (const RpcError& error) {
      caught = error.error();
      what = error.what();
    }
  });
  std::vector<std::thread> workers;
  std::array<std::optional<Status>, 2> ends;
  for (const uint32_t rank : {0u, 1u})
    workers.emplace_back(
        [&, rank] { ends[rank] = run_worker(options_of(rank, told.store()), program); });
  for (std::thread& worker : workers) worker.join();
  for (const auto& end : ends) EXPECT_TRUE(end->ok());
  ASSERT_TRUE(caught);
  EXPECT_NE(caught->text.find(kHostileText), std::string::npos);
  EXPECT_NE(what.find(kHostileTextShown), std::string::npos) << what;
  EXPECT_TRUE(is_plain(what));
  const std::string log = told.text();
  EXPECT_TRUE(is_plain(log)) << log;
  EXPECT_NE(log.find("\\x1b[2J"), std::string::npos) << log;
  EXPECT_EQ(log.find("\n2026-01-01T00:00:00"), std::string::npos) << "a line that we never wrote";
}

// The end of rank 0, whom rank 1 refuses to join, with all there is for a reason.
Status end_of_who_waits(bool refuses_first) {
  const TemporaryFolder folder;
  const std::string store = folder.file("store");
  FunctionRegistry registry;
  Program program(registry);
  program.worker("server").worker("client");
  WorkerOptions waits = options_of(0, store);
  waits.observe.log = "off";
  const auto refuse = [&] {
    refuse_to_join(options_of(1, store), {.kind = ErrorKind::bad_arguments, .text = kHostileText});
  };
  if (refuses_first) refuse();
  std::optional<Status> end;
  std::thread waiting([&] { end = run_worker(waits, program); });
  if (!refuses_first) refuse();
  waiting.join();
  return *end;
}

TEST(HostileText, OfWhoDoesNotJoinIsPlainInTheErrorOfThoseWhoWait) {
  // Goal: a text that a stranger leaves in the store ends the group, in one plain line, also if the
  // stranger came and went before anybody else. Method: refuse before and while another waits.
  for (const bool refuses_first : {true, false}) {
    const Status end = end_of_who_waits(refuses_first);
    ASSERT_FALSE(end.ok());
    const std::string shown = to_string(end.error());
    EXPECT_TRUE(is_plain(shown)) << shown;
    EXPECT_EQ(shown.find('\n'), std::string::npos);
    EXPECT_NE(shown.find("\\x1b[2J"), std::string::npos) << shown;
  }
}

}  // namespace
}  // namespace rehearsal::real
