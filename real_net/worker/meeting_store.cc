#include "real_net/worker/meeting_store.h"

#include <poll.h>

#include <algorithm>
#include <thread>

// The wheel is built with these, and c10d's headers ask for them.
#define USE_DISTRIBUTED
#define USE_C10D_GLOO
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace rehearsal::real {
namespace {

using Clock = std::chrono::steady_clock;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

constexpr auto kConnectsApart = std::chrono::milliseconds(100);

Error failure(ErrorKind kind, std::string text) { return {.kind = kind, .text = std::move(text)}; }

std::chrono::milliseconds left_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

// Whether somebody listens there. c10d's own attempts print a warning each.
bool can_connect(const Address& address, std::chrono::milliseconds limit) {
  Result<FileDescriptor> socket = begin_connect(address);
  if (!socket.ok()) return false;
  pollfd polled{.fd = socket.value().get(), .events = POLLOUT, .revents = 0};
  return poll(&polled, 1, static_cast<int>(limit.count())) == 1 &&
         connect_result(socket.value().get()) == 0;
}

c10d::TCPStoreOptions store_options(const Address& master, Clock::time_point deadline) {
  c10d::TCPStoreOptions options;
  options.port = master.port;
  options.waitWorkers = false;
  options.timeout = left_until(deadline);
  return options;
}

Result<StorePtr> serve(const Address& master, Clock::time_point deadline) {
  const bool local = is_loopback(master.host);
  Result<FileDescriptor> socket =
      listen_on({.host = local ? "127.0.0.1" : "", .port = master.port});
  if (!socket.ok())
    return failure(socket.error().kind,
                   "rank 0 cannot serve the rendezvous: " + socket.error().text);
  c10d::TCPStoreOptions options = store_options(master, deadline);
  options.isServer = true;
  options.masterListenFd = dup(socket.value().get());  // the store owns it
  return StorePtr(c10::make_intrusive<c10d::TCPStore>(master.host, options));
}

Result<StorePtr> connect(const Address& master, const std::string& server,
                         Clock::time_point deadline) {
  while (!can_connect(master, left_until(deadline))) {
    if (Clock::now() >= deadline)
      return failure(ErrorKind::timeout, "nobody serves the rendezvous at " + to_string(master) +
                                             ": is rank 0 ('" + server +
                                             "') running, and is the address right?");
    std::this_thread::sleep_for(kConnectsApart);
  }
  return StorePtr(
      c10::make_intrusive<c10d::TCPStore>(master.host, store_options(master, deadline)));
}

}  // namespace

class MeetingStore::Impl {
 public:
  explicit Impl(StorePtr made) : store(std::move(made)) {}
  const StorePtr store;
};

MeetingStore::MeetingStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MeetingStore::~MeetingStore() = default;

std::string MeetingStore::place(const Placement& placement) {
  return placement.file.empty() ? to_string(placement.master) : placement.file;
}

bool MeetingStore::served_by_worker(const Placement& placement) {
  return placement.file.empty() && !placement.agent_serves;
}

bool MeetingStore::reachable(const Placement& placement) {
  return !placement.file.empty() || can_connect(placement.master, kConnectsApart);
}

Result<std::unique_ptr<MeetingStore>> MeetingStore::open(const Placement& placement,
                                                         const std::vector<std::string>& names,
                                                         Instant deadline) {
  StorePtr store;
  if (!placement.file.empty()) {
    store = c10::make_intrusive<c10d::FileStore>(placement.file, static_cast<int>(names.size()));
  } else {
    const bool serves = placement.rank == 0 && !placement.agent_serves;
    Result<StorePtr> made = serves ? serve(placement.master, deadline)
                                   : connect(placement.master, names.at(0), deadline);
    if (!made.ok()) return made.error();
    store = std::move(made).value();
  }
  store->setTimeout(left_until(deadline));
  auto of_run = c10::make_intrusive<c10d::PrefixStore>("rehearsal/" + placement.run, store);
  return std::unique_ptr<MeetingStore>(new MeetingStore(std::make_unique<Impl>(of_run)));
}

int64_t MeetingStore::add(const std::string& key, int64_t value) {
  return impl_->store->add(key, value);
}

void MeetingStore::set(const std::string& key, const std::string& value) {
  impl_->store->set(key, value);
}

std::string MeetingStore::get(const std::string& key) { return impl_->store->get_to_str(key); }

bool MeetingStore::has(const std::vector<std::string>& keys) { return impl_->store->check(keys); }

}  // namespace rehearsal::real
