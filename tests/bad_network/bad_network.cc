#include "tests/bad_network/bad_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>

#include "core/base/hash.h"

namespace rehearsal::bad_network {
namespace {

constexpr const char* kDevice = "link0";
constexpr uint32_t kNetwork = 10u << 24 | 77u << 16;  // 10.77.0.0/16
constexpr size_t kPacketMax = 65536;
constexpr size_t kQueueMax = 1000;  // packets that are held up, of all machines

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

// Runs it on a thread of its own, whose namespace is nobody else's business; why it failed, if so.
std::string aside(const std::function<void()>& work) {
  std::string why;
  std::thread([&] {
    try {
      work();
    } catch (const std::exception& error) {
      why = error.what();
    }
  }).join();
  return why;
}

ifreq request(const char* name) {
  ifreq made{};
  std::strncpy(made.ifr_name, name, IFNAMSIZ - 1);
  return made;
}

void ask(unsigned long what, ifreq& words, const char* name) {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int done = ioctl(any, what, &words);
  const int error = errno;
  close(any);
  errno = error;
  if (done != 0) fail(name);
}

void bring_up(const char* device) {
  ifreq words = request(device);
  words.ifr_flags = IFF_UP | IFF_RUNNING;
  ask(SIOCSIFFLAGS, words, "an interface cannot be brought up");
}

sockaddr* as_address(ifreq& words, uint32_t address) {
  auto* inet = reinterpret_cast<sockaddr_in*>(&words.ifr_addr);
  inet->sin_family = AF_INET;
  inet->sin_addr.s_addr = htonl(address);
  return &words.ifr_addr;
}

void give_address(uint32_t address) {
  ifreq words = request(kDevice);
  as_address(words, address);
  ask(SIOCSIFADDR, words, "an address cannot be given");
  words = request(kDevice);
  as_address(words, 0xFFFF0000u);
  ask(SIOCSIFNETMASK, words, "an address cannot be given");
}

// In a new namespace, which lives as long as its descriptor.
int make_device() {
  if (unshare(CLONE_NEWNET) != 0) fail("this process may have no network namespace");
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (device < 0) fail("this process may have no TUN device");
  ifreq words = request(kDevice);
  words.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(device, TUNSETIFF, &words) != 0) fail("this process may have no TUN device");
  return device;
}

void enter(int name_space) {
  if (setns(name_space, CLONE_NEWNET) != 0) fail("a network namespace cannot be entered");
}

std::optional<uint32_t> destination_of(const std::string& packet) {
  constexpr size_t kHeader = 20;
  if (packet.size() < kHeader || static_cast<uint8_t>(packet[0]) >> 4 != 4) return std::nullopt;
  uint32_t address = 0;
  std::memcpy(&address, packet.data() + 16, sizeof address);
  return ntohl(address);
}

}  // namespace

std::string BadNetwork::why_impossible() {
  return aside([] { close(make_device()); });
}

BadNetwork::BadNetwork(size_t machines, Seed seed)
    : seed_(seed), machines_(machines), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (Machine& machine : machines_) make(machine);
  thread_ = std::thread([this] { run(); });
}

BadNetwork::~BadNetwork() {
  over_ = true;
  const uint64_t one = 1;
  (void)!write(wake_, &one, sizeof one);
  thread_.join();
  for (const Machine& machine : machines_) {
    close(machine.device);
    close(machine.name_space);
  }
  close(wake_);
}

void BadNetwork::make(Machine& machine) {
  machine.address = kNetwork + ++next_address_;
  const std::string why = aside([&] {
    machine.device = make_device();
    bring_up("lo");
    give_address(machine.address);
    bring_up(kDevice);
    machine.name_space = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    if (machine.name_space < 0) fail("a network namespace cannot be kept");
  });
  if (!why.empty()) throw std::runtime_error(why);
}

std::string BadNetwork::address(size_t machine) {
  const std::lock_guard lock(mutex_);
  const in_addr address{htonl(machines_[machine].address)};
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &address, text.data(), text.size());
}

void BadNetwork::set(const Weather& weather) {
  const std::lock_guard lock(mutex_);
  weather_ = weather;
}

void BadNetwork::set_cable(size_t machine, bool in) {
  const std::lock_guard lock(mutex_);
  machines_[machine].cable = in;
}

void BadNetwork::set_mtu(size_t machine, int bytes) {
  const int name_space = machines_[machine].name_space;
  const std::string why = aside([name_space, bytes] {
    enter(name_space);
    ifreq words = request(kDevice);
    words.ifr_mtu = bytes;
    ask(SIOCSIFMTU, words, "an MTU cannot be set");
  });
  if (!why.empty()) throw std::runtime_error(why);
}

void BadNetwork::move(size_t machine) {
  const std::lock_guard lock(mutex_);
  const uint32_t address = kNetwork + ++next_address_;
  const int name_space = machines_[machine].name_space;
  const std::string why = aside([name_space, address] {
    enter(name_space);
    give_address(address);
  });
  if (!why.empty()) throw std::runtime_error(why);
  machines_[machine].address = address;
}

BadNetwork::Counts BadNetwork::counts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool BadNetwork::drawn(double part) {
  return static_cast<double>(mix(seed_.value, ++draws_) >> 11) < part * 0x1p53;
}

void BadNetwork::run() {
  std::vector<pollfd> waits;
  for (const Machine& machine : machines_) waits.push_back({machine.device, POLLIN, 0});
  waits.push_back({wake_, POLLIN, 0});
  std::string room(kPacketMax, '\0');
  while (!over_) {
    timespec patience{.tv_sec = 1, .tv_nsec = 0};
    {
      const std::lock_guard lock(mutex_);
      if (!on_the_way_.empty()) {
        const auto left = std::clamp<Duration>(on_the_way_.begin()->first - Clock::now(),
                                               Duration::zero(), std::chrono::milliseconds(999));
        patience = {.tv_sec = 0, .tv_nsec = left.count()};
      }
    }
    (void)ppoll(waits.data(), waits.size(), &patience, nullptr);
    const Clock::time_point now = Clock::now();
    for (size_t from = 0; from < machines_.size(); ++from) {
      for (int packets = 0; packets < 64; ++packets) {
        const ssize_t count = read(machines_[from].device, room.data(), room.size());
        if (count <= 0) break;
        take(from, room.substr(0, static_cast<size_t>(count)), now);
      }
    }
    deliver(now);
  }
}

void BadNetwork::take(size_t from, std::string bytes, Clock::time_point now) {
  const std::optional<uint32_t> destination = destination_of(bytes);
  if (!destination) return;
  const std::lock_guard lock(mutex_);
  for (size_t to = 0; to < machines_.size(); ++to) {
    if (machines_[to].address != *destination) continue;
    ++counts_.packets;
    const bool connected = machines_[from].cable && machines_[to].cable;
    if (!connected || drawn(weather_.loss) || on_the_way_.size() >= kQueueMax) {
      ++counts_.lost;
      return;
    }
    send(to, bytes, now);
    if (!drawn(weather_.doubled)) return;
    ++counts_.doubled;
    send(to, bytes, now);
  }
}

void BadNetwork::send(size_t to, const std::string& bytes, Clock::time_point now) {
  Machine& machine = machines_[to];
  if (weather_.bytes_per_second > 0) {
    machine.free_at =
        std::max(machine.free_at, now) +
        std::chrono::nanoseconds(bytes.size() * 1'000'000'000 / weather_.bytes_per_second);
  } else {
    machine.free_at = now;
  }
  const uint64_t parts = mix(seed_.value, ++draws_) % 1024;
  Clock::time_point when =
      std::max(machine.free_at, now) + weather_.delay + weather_.jitter * parts / 1024;
  if (drawn(weather_.overtaking)) {
    ++counts_.overtaken;
  } else {
    when = machine.last = std::max(machine.last, when);
  }
  on_the_way_.emplace(when, Packet{to, bytes});
}

void BadNetwork::deliver(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  while (!on_the_way_.empty() && on_the_way_.begin()->first <= now) {
    const auto packet = on_the_way_.extract(on_the_way_.begin());
    const Packet& known = packet.mapped();
    const std::string& bytes = known.bytes;
    (void)!write(machines_[known.to].device, bytes.data(), bytes.size());
  }
}

}  // namespace rehearsal::bad_network
