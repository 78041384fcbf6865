// Goal: whatever happens to gloo or to a member, every wait ends with an error that names the
// worker and the cause. Method: a process for each worker; members that are killed or stand still,
// and connections of gloo that break.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "tests/real_net/gloo/gloo_program.h"

namespace rehearsal::real {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int64_t kHuge = 16'000'000;  // elements

using GlooFailures = GlooTest;

[[noreturn]] void sum_for_ever(const ProcessGroup& group) {
  const at::Tensor sum = at::ones({kHuge});
  while (true) group.all_reduce(sum, ReduceOp::average);
}

bool is_connected(int descriptor) {
  sockaddr_storage peer{};
  socklen_t size = sizeof peer;
  return getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
}

// That have come over these connections so far.
uint64_t received_bytes(const std::set<int>& connections) {
  uint64_t bytes = 0;
  for (const int connection : connections) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (getsockopt(connection, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
      bytes += info.tcpi_bytes_received;
  }
  return bytes;
}

// Sums, and signals this process while gloo brings it what the others give to a later sum.
[[noreturn]] void sum_until_signalled(const ProcessGroup& group, int number) {
  std::set<int> connections = own_sockets();
  const std::set<int> before = connections;
  group.all_reduce(at::ones({kHuge}), ReduceOp::average);
  connections = own_sockets();
  std::erase_if(connections, [&](int one) { return before.contains(one) || !is_connected(one); });
  std::thread([connections, number, so_far = received_bytes(connections)] {
    while (received_bytes(connections) < so_far + kHuge)
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    kill(getpid(), number);
  }).detach();
  sum_for_ever(group);
}

// Those that are left, in a new group.
void go_on(Worker& worker) {
  const ProcessGroup left(worker, {"member0", "member1"});
  const at::Tensor sum = at::ones({100'000});
  left.all_reduce(sum);
  require(sum[99'999].item<float>() == 2, "a new group sums");
  left.barrier();
  worker.leave_at_once();
  worker.sleep(seconds(1));  // Until the other has taken what it was given, too.
}

TEST_F(GlooFailures, AKilledMemberIsNamedWithWhatGlooSaid) {
  // Gloo says something only to those whom the death finds inside of it: not every try is one.
  constexpr int kTries = 10;
  auto* const said =
      static_cast<std::atomic<int>*>(mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(said, MAP_FAILED);
  const Program program = members(3, [said](Worker& worker) {
    const ProcessGroup group(worker);
    if (worker.id().value == 2) sum_until_signalled(group, SIGKILL);
    const Error error = error_of([&] { sum_for_ever(group); });
    require(error.kind == ErrorKind::peer_lost && error.worker == "member2", to_string(error));
    require(error.text.find("member2' has ended: its port refuses") != std::string::npos,
            to_string(error));
    if (error.text.find("before that: gloo: ") != std::string::npos) ++*said;
    go_on(worker);
  });
  Nursery children([&](int number) {
    WorkerOptions patient = options(static_cast<uint32_t>(number % 3), "gloo");
    patient.placement.run_id = std::to_string(number / 3);
    patient.node.peer_timeout = hours(1);
    return run(patient, program);
  });
  for (int tried = 0; tried < kTries && *said == 0 && !HasFailure(); ++tried) {
    std::array<pid_t, 3> member{};
    for (int rank = 0; rank < 3; ++rank) member.at(rank) = children.start(3 * tried + rank);
    EXPECT_EQ(children.wait(member[2]), -SIGKILL);
    EXPECT_EQ(children.wait(member[0]), 0);
    EXPECT_EQ(children.wait(member[1]), 0);
  }
  EXPECT_GT(*said, 0);
  munmap(said, sizeof *said);
}

TEST_F(GlooFailures, AMemberThatStandsStillIsGivenUpAfterItsSilence) {
  // Method: gloo itself would wait for longer than this test may last.
  const Program program = members(3, [](Worker& worker) {
    const ProcessGroup group(worker, {}, {.timeout = Timeout::never()});
    if (worker.id().value == 2) sum_until_signalled(group, SIGSTOP);
    const Error error = error_of([&] { sum_for_ever(group); });
    require(error.kind == ErrorKind::peer_lost && error.worker == "member2", to_string(error));
    go_on(worker);
  });
  Nursery children([&](int rank) {
    WorkerOptions strict = options(static_cast<uint32_t>(rank), "gloo");
    strict.node.peer_timeout = seconds(3);
    return run(strict, program);
  });
  const pid_t first = children.start(0);
  const pid_t second = children.start(1);
  const pid_t victim = children.start(2);
  EXPECT_EQ(children.wait(first), 0);
  EXPECT_EQ(children.wait(second), 0);
  EXPECT_EQ(children.kill(victim), -SIGKILL);
}

TEST_F(GlooFailures, ABrokenConnectionOfGlooEndsTheGroupWithGloosWords) {
  // Everybody lives: nobody else is to be blamed.
  const Program program = members(3, [](Worker& worker) {
    std::optional<ProcessGroup> group;
    group.emplace(worker);
    const std::set<int> before = own_sockets();
    group->all_reduce(at::ones({100'000}));
    group->barrier();
    if (worker.id().value == 1)
      for (const int descriptor : own_sockets())
        if (!before.contains(descriptor) && is_connected(descriptor))
          shutdown(descriptor, SHUT_RDWR);
    const Error error = error_of([&] { sum_for_ever(*group); });
    require(error.kind == ErrorKind::protocol, to_string(error));
    require(error.text.find("all_reduce(average)") == 0, to_string(error));
    require(error.text.find("gloo: ") != std::string::npos, to_string(error));
    const Error later = error_of([&] { group->barrier(); });
    require(later.kind == ErrorKind::protocol, to_string(later));
    group.emplace(worker);
    group->all_reduce(at::ones({100'000}));
  });
  Nursery children(
      [&](int rank) { return run(options(static_cast<uint32_t>(rank), "gloo"), program); });
  std::vector<pid_t> all;
  for (int rank = 0; rank < 3; ++rank) all.push_back(children.start(rank));
  for (const pid_t child : all) EXPECT_EQ(children.wait(child), 0);
}

TEST_F(GlooFailures, MembersThatDoNotDoTheSameAreBothNamed) {
  const Program program = members(3, [](Worker& worker) {
    for (int round = 0; round < 2; ++round) {
      const ProcessGroup group(worker);
      if (round == 1) {
        group.all_reduce(at::ones({100'000}));
        worker.barrier();  // Done at all: one that is not would fail with the next.
      }
      const int64_t size = worker.id().value == 1 ? 200'000 : 100'000;
      const Error error = error_of([&] { group.all_reduce(at::ones({size})); });
      require(error.kind == ErrorKind::bad_arguments, to_string(error));
      for (const char* text : {"'member1'", "Float[100000]", "Float[200000]"})
        require(error.text.find(text) != std::string::npos, to_string(error));
    }
  });
  Nursery children(
      [&](int rank) { return run(options(static_cast<uint32_t>(rank), "gloo"), program); });
  std::vector<pid_t> all;
  for (int rank = 0; rank < 3; ++rank) all.push_back(children.start(rank));
  for (const pid_t child : all) EXPECT_EQ(children.wait(child), 0);
}

TEST_F(GlooFailures, AMemberThatDoesNotComeIsNamedWhenTheTimeIsUp) {
  const Program program = members(3, [](Worker& worker) {
    const ProcessGroup group(worker, {}, {.timeout = Timeout(seconds(2))});
    if (worker.id().value == 2) {
      worker.sleep(seconds(5));
      return;
    }
    const Error error = error_of([&] { group.all_reduce(at::ones({100'000})); });
    require(error.kind == ErrorKind::timeout, to_string(error));
    require(error.text.find("'member2' had not come") != std::string::npos, to_string(error));
  });
  Nursery children(
      [&](int rank) { return run(options(static_cast<uint32_t>(rank), "gloo"), program); });
  std::vector<pid_t> all;
  for (int rank = 0; rank < 3; ++rank) all.push_back(children.start(rank));
  for (const pid_t child : all) EXPECT_EQ(children.wait(child), 0);
}

}  // namespace
}  // namespace rehearsal::real
