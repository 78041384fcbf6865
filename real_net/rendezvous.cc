#include "real_net/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <sstream>
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

constexpr auto kFirstLook = std::chrono::milliseconds(2);
constexpr auto kLooksApart = std::chrono::milliseconds(100);
constexpr auto kConnectsApart = std::chrono::milliseconds(100);

Error failure(ErrorKind kind, std::string text) { return {.kind = kind, .text = std::move(text)}; }

std::string encode(const MemberRecord& record) {
  std::ostringstream text;
  text << record.incarnation.value << '\n'
       << record.world_size << '\n'
       << record.address.port << '\n'
       << record.address.host << '\n'
       << record.name;
  return text.str();
}

std::optional<MemberRecord> decode(const std::string& text) {
  std::istringstream lines(text);
  MemberRecord record;
  lines >> record.incarnation.value >> record.world_size >> record.address.port;
  lines.ignore();
  std::getline(lines, record.address.host);
  std::getline(lines, record.name);
  if (lines.bad() || record.incarnation.value == 0 || record.address.port == 0) return std::nullopt;
  return record;
}

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

}  // namespace

// One attempt of one group to meet.
class Rendezvous::Meeting {
 public:
  explicit Meeting(const RendezvousOptions& options)
      : options_(options), deadline_(Clock::now() + options.timeout) {}

  Result<std::vector<MemberRecord>> run() {
    // c10d reports everything by exceptions of several types.
    try {
      if (Status opened = open_store(); !opened.ok()) return opened.error();
      auto met = meet();
      if (!met.ok()) tell_others(met.error());
      return met;
    } catch (const std::exception& error) {
      return failure(ErrorKind::peer_lost,
                     "the rendezvous at " + place() + " failed: " + first_line(error.what()));
    }
  }

 private:
  static std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

  [[nodiscard]] std::string place() const {
    return options_.placement.file.empty() ? to_string(options_.placement.master)
                                           : options_.placement.file;
  }
  [[nodiscard]] bool serves() const {
    return options_.placement.rank == 0 && !options_.placement.agent_serves;
  }
  [[nodiscard]] uint32_t world_size() const { return static_cast<uint32_t>(options_.names.size()); }
  [[nodiscard]] std::string describe(uint32_t rank) const {
    return "rank " + std::to_string(rank) + " ('" + options_.names[rank] + "')";
  }

  Status open_store() {
    c10::intrusive_ptr<c10d::Store> store;
    if (!options_.placement.file.empty()) {
      store = c10::make_intrusive<c10d::FileStore>(options_.placement.file,
                                                   static_cast<int>(world_size()));
    } else {
      Result<c10::intrusive_ptr<c10d::Store>> made = serves() ? serve() : connect();
      if (!made.ok()) return made.error();
      store = std::move(made).value();
    }
    store->setTimeout(left_until(deadline_));
    store_ = c10::make_intrusive<c10d::PrefixStore>("rehearsal/" + options_.placement.run, store);
    return Unit{};
  }

  Result<c10::intrusive_ptr<c10d::Store>> serve() {
    const Address& master = options_.placement.master;
    const bool local = is_loopback(master.host);
    Result<FileDescriptor> socket =
        listen_on({.host = local ? "127.0.0.1" : "", .port = master.port});
    if (!socket.ok())
      return failure(socket.error().kind,
                     "rank 0 cannot serve the rendezvous: " + socket.error().text);
    // The store owns the descriptor from here on.
    listening_ = std::move(socket).value();
    c10d::TCPStoreOptions store_options = common_options();
    store_options.isServer = true;
    store_options.masterListenFd = dup(listening_.get());
    listening_.reset();
    return c10::intrusive_ptr<c10d::Store>(
        c10::make_intrusive<c10d::TCPStore>(master.host, store_options));
  }

  Result<c10::intrusive_ptr<c10d::Store>> connect() {
    const Address& master = options_.placement.master;
    while (!can_connect(master, left_until(deadline_))) {
      if (Clock::now() >= deadline_)
        return failure(ErrorKind::timeout, "nobody serves the rendezvous at " + place() +
                                               ": is rank 0 ('" + options_.names[0] +
                                               "') running, and is the address right?");
      std::this_thread::sleep_for(kConnectsApart);
    }
    return c10::intrusive_ptr<c10d::Store>(
        c10::make_intrusive<c10d::TCPStore>(master.host, common_options()));
  }

  c10d::TCPStoreOptions common_options() const {
    c10d::TCPStoreOptions store_options;
    store_options.port = options_.placement.master.port;
    store_options.waitWorkers = false;
    store_options.timeout = left_until(deadline_);
    return store_options;
  }

  // A store may have served earlier groups of the same run: a program may start anew in the same
  // processes.
  Result<std::vector<MemberRecord>> meet() {
    const int64_t groups_before = store_->add("groups", 0);
    group_ = "group" + std::to_string(groups_before) + "/";
    const uint32_t rank = options_.placement.rank;
    if (store_->add(group_ + "claims/" + std::to_string(rank), 1) > 1)
      return failure(ErrorKind::bad_arguments, "two workers were started as " + describe(rank) +
                                                   ": each rank and name must be given once");
    store_->set(member_key(rank), encode(options_.self));
    if (Status all = wait_for_all(); !all.ok()) return all.error();
    std::vector<MemberRecord> records;
    for (uint32_t other = 0; other < world_size(); ++other) {
      const auto record = decode(store_->get_to_str(member_key(other)));
      if (Status fits = check(other, record); !fits.ok()) return fits.error();
      records.push_back(*record);
    }
    const int64_t arrived = store_->add(group_ + "arrived", 1);
    if (arrived == world_size()) store_->add("groups", 1);
    return records;
  }

  [[nodiscard]] std::string member_key(uint32_t rank) const {
    return group_ + "members/" + std::to_string(rank);
  }

  Status wait_for_all() {
    std::vector<std::string> keys;
    for (uint32_t rank = 0; rank < world_size(); ++rank) keys.push_back(member_key(rank));
    std::chrono::milliseconds pause = kFirstLook;
    while (!store_->check(keys)) {
      if (store_->check({group_ + "failure"}))
        return failure(ErrorKind::peer_lost, store_->get_to_str(group_ + "failure"));
      if (Clock::now() >= deadline_) return missing();
      std::this_thread::sleep_for(pause);
      pause = std::min(kLooksApart, 2 * pause);
    }
    return Unit{};
  }

  Error missing() {
    std::string text =
        "not all workers came within " +
        std::to_string(std::chrono::duration_cast<std::chrono::seconds>(options_.timeout).count()) +
        " s; missing:";
    for (uint32_t rank = 0; rank < world_size(); ++rank)
      if (!store_->check({member_key(rank)})) text += " " + describe(rank) + ",";
    text.pop_back();
    return failure(ErrorKind::timeout, text);
  }

  Status check(uint32_t rank, const std::optional<MemberRecord>& record) const {
    if (!record)
      return failure(ErrorKind::protocol, describe(rank) + " published what cannot be read");
    if (record->world_size != world_size())
      return failure(ErrorKind::bad_arguments,
                     describe(rank) + " expects " + std::to_string(record->world_size) +
                         " workers, this one " + std::to_string(world_size()));
    if (record->name != options_.names[rank])
      return failure(ErrorKind::bad_arguments, describe(rank) + " calls itself '" + record->name +
                                                   "': do all workers run the same program?");
    return Unit{};
  }

  // Whoever still waits fails with the same reason; who serves the store gives them time to read.
  void tell_others(const Error& error) {
    store_->set(group_ + "failure", error.text);
    if (serves() && options_.placement.file.empty()) std::this_thread::sleep_for(3 * kLooksApart);
  }

  const RendezvousOptions& options_;
  const Clock::time_point deadline_;
  FileDescriptor listening_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::string group_;
};

Rendezvous::Rendezvous(RendezvousOptions options) : options_(std::move(options)) {}
Rendezvous::~Rendezvous() = default;

Result<std::vector<MemberRecord>> Rendezvous::join() {
  meeting_ = std::make_unique<Meeting>(options_);
  return meeting_->run();
}

}  // namespace rehearsal::real
