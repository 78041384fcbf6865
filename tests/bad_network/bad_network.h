#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/ids.h"
#include "core/base/time.h"

namespace rehearsal::bad_network {

// The network between the machines, from now on.
struct Weather {
  double loss = 0;                // parts of all packets
  double doubled = 0;             // the same
  double overtaking = 0;          // that do not wait for those before them
  Duration delay{};               // of every packet
  Duration jitter{};              // up to so much more
  uint64_t bytes_per_second = 0;  // towards each machine; 0: as fast as it goes
};

// Machines, each a network namespace of this system with one address, and the network between them:
// a thread that hands on IP packets and loses, doubles, delays, reorders and holds them up. The
// kernel's own TCP runs over it. Draws follow from a seed; when a packet comes does not.
class BadNetwork {
 public:
  // Why this process cannot have one; empty: it can.
  [[nodiscard]] static std::string why_impossible();

  BadNetwork(size_t machines, Seed seed);
  ~BadNetwork();
  BadNetwork(const BadNetwork&) = delete;
  BadNetwork& operator=(const BadNetwork&) = delete;

  // For setns(2): a process that enters it is on that machine.
  [[nodiscard]] int name_space(size_t machine) const { return machines_[machine].name_space; }
  [[nodiscard]] std::string address(size_t machine);

  void set(const Weather& weather);
  // Out: nothing comes from it or goes to it.
  void set_cable(size_t machine, bool in);
  // Of its interface: what it sends from now on is cut to this.
  void set_mtu(size_t machine, int bytes);
  // The machine gets an address that none has had before.
  void move(size_t machine);

  struct Counts {
    uint64_t packets = 0;
    uint64_t lost = 0;
    uint64_t doubled = 0;
    uint64_t overtaken = 0;
  };
  [[nodiscard]] Counts counts();

 private:
  using Clock = std::chrono::steady_clock;
  struct Machine {
    int name_space = -1;
    int device = -1;
    uint32_t address = 0;  // in the order of the host
    bool cable = true;
    Clock::time_point free_at{};  // when its way in has carried what was sent
    Clock::time_point last{};     // when the last packet in order arrives
  };
  struct Packet {
    size_t to;
    std::string bytes;
  };

  void make(Machine& machine);
  void run();
  void take(size_t from, std::string bytes, Clock::time_point now);
  void send(size_t to, const std::string& bytes, Clock::time_point now);
  void deliver(Clock::time_point now);
  [[nodiscard]] bool drawn(double part);

  const Seed seed_;
  std::vector<Machine> machines_;
  int wake_ = -1;
  std::atomic<bool> over_{false};
  std::mutex mutex_;  // of all below, of addresses and of cables
  Weather weather_;
  Counts counts_;
  uint64_t draws_ = 0;
  uint32_t next_address_ = 0;
  std::multimap<Clock::time_point, Packet> on_the_way_;
  std::thread thread_;
};

}  // namespace rehearsal::bad_network
