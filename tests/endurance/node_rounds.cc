#include "tests/endurance/node_rounds.h"

#include <algorithm>
#include <chrono>

#include "core/base/check.h"
#include "core/base/hash.h"
#include "tests/endurance/weather.h"

namespace rehearsal::endurance {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kRoundMax = seconds(150);

NodeOptions node_options(uint32_t rank, uint32_t life, const std::vector<std::string>& names,
                         const RoundOptions& options) {
  NodeOptions made;
  made.id = {rank};
  made.life = life;
  made.seed = options.seed;
  made.names = names;
  made.mutants = options.mutants;
  made.heartbeat = milliseconds(300);
  made.peer_timeout = seconds(3);
  made.join_timeout = seconds(15);
  made.shutdown_timeout = seconds(15);
  made.rpc_timeout = seconds(30);
  return made;
}

// Returns when it has run.
void on_strand(real::RealNode& node, Task task) {
  Waiter waiter;
  node.runtime().post([&] {
    task();
    node.runtime().wake(waiter);
  });
  REHEARSAL_CHECK(node.runtime().park(waiter) == ParkOutcome::woken);
}

// Another thread is about to drop what it has in its hands.
bool becomes_true(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// The contents of a node's tables, with names; empty if they are.
std::string held_by(const Node& node) {
  const NodeCensus census = node.census();
  const std::pair<const char*, uint64_t> counts[] = {
      {"calls", census.pending_calls},     {"executions", census.executions},
      {"owners", census.owners},           {"forks", census.owner_forks},
      {"handles", census.owner_handles},   {"users", census.users},
      {"new users", census.pending_users}, {"children", census.pending_children},
      {"contexts", census.contexts},       {"passes", census.passes},
      {"frames", census.unacknowledged},   {"timers", census.timers}};
  std::string text;
  for (const auto& [name, count] : counts)
    if (count > 0) text += std::to_string(count) + " " + name + " ";
  return text.empty() ? text : text + "\n" + node.debug_info();
}

std::string what_it_waits_for(real::RealNode& node) {
  std::string text;
  on_strand(node, [&] {
    const WaitViews waits = node.node().waits();
    for (const auto& stack : waits.stacks) text += stack.label + " waits for " + stack.what + "\n";
    text += waits.others + node.node().debug_info();
  });
  return text;
}

}  // namespace

bool names_a_loss(const Error& error) {
  using enum ErrorKind;
  const bool fits = error.kind == peer_lost || error.kind == fenced || error.kind == timeout ||
                    error.kind == node_stopped;
  return fits && to_string(error).find("worker") != std::string::npos && !error.text.empty();
}

NodeRounds::NodeRounds(size_t workers) {
  for (size_t rank = 0; rank < workers; ++rank)
    proxies_.push_back(std::make_unique<real::FaultProxy>());
}

std::unique_ptr<NodeRounds::Life> NodeRounds::start(uint32_t rank, uint32_t number,
                                                    const MakeProgram& program,
                                                    const RoundOptions& options) {
  auto life = std::make_unique<Life>(program);
  const auto way_to = [this](uint32_t to) {
    return real::Address{.host = "127.0.0.1", .port = proxies_[to]->port()};
  };
  real::RealNodeOptions made;
  made.node = node_options(rank, number, life->program.names(), options);
  made.node.incarnation = incarnation_of({rank}, ++incarnations_);
  made.runtime.worker_threads = static_cast<uint32_t>((options.seed.value + rank) % 3);
  made.checkpoints = folder_->path().string();
  made.transport.advertise = way_to(rank);
  made.transport.back_off = {.min = milliseconds(2), .max = milliseconds(50)};
  made.transport.patience = milliseconds(40);
  life->node = std::make_unique<real::RealNode>(made, life->program);
  proxies_[rank]->set_target(life->node->address().port);
  for (uint32_t to = 0; to < proxies_.size(); ++to)
    if (to != rank) life->node->set_address({to}, way_to(to));
  life->thread = std::thread([&life = *life] {
    life.end = life.node->run();
    life.ended = true;
  });
  return life;
}

// Its connections are cut, and nobody is told.
void NodeRounds::crash(Life& life, const std::string& name) {
  const Error why{
      .kind = ErrorKind::node_stopped, .text = "the worker has crashed", .worker = name};
  life.node->runtime().post([&node = *life.node, why] {
    node.transport().abort();
    node.node().abort(why);
  });
  life.thread.join();
}

void NodeRounds::crash_some(std::vector<std::unique_ptr<Life>>& lives, const MakeProgram& program,
                            const RoundOptions& options, Complaints& complaints) {
  const uint64_t crashes = mix(options.seed.value, 1) % (options.crashes_max + 1);
  std::vector<uint32_t> numbers(lives.size());
  for (uint64_t crashed = 0; crashed < crashes; ++crashed) {
    const uint64_t word = mix(options.seed.value, 100 + crashed);
    const auto rank = static_cast<uint32_t>(word % lives.size());
    std::this_thread::sleep_for(milliseconds(mix(word, 1) % 250));
    // A worker that came back to a group that has gone would wait in vain.
    if (std::any_of(lives.begin(), lives.end(),
                    [](const auto& life) { return life->ended.load(); }))
      return;
    const std::string name = lives[rank]->program.names()[rank];
    proxies_[rank]->set_target(0);
    crash(*lives[rank], name);
    look_for_leftovers(*lives[rank], name + ", which crashed,", complaints);
    lives[rank] = start(rank, ++numbers[rank], program, options);
    ++counts_.crashes;
  }
}

void NodeRounds::look_for_leftovers(Life& life, const std::string& name, Complaints& complaints) {
  for (const std::string& label : life.node->stuck())
    complaints.push_back(name + " has left the execution " + label);
  if (!life.node->stuck().empty()) return;
  std::string left;
  const bool empty = becomes_true([&] {
    on_strand(*life.node, [&] { left = held_by(life.node->node()); });
    return left.empty();
  });
  if (!empty) complaints.push_back(name + " has left " + left);
  const auto slabs = life.node->pool().watch();
  life.node.reset();
  // Parts of its worker that a program keeps, such as contexts, keep what the worker has yet to
  // release.
  life.program = Program(FunctionRegistry());
  if (!becomes_true([&] { return slabs().in_use == 0; }))
    complaints.push_back(name + " has left " + std::to_string(slabs().in_use) + " slabs");
}

void NodeRounds::end_all(std::vector<std::unique_ptr<Life>>& lives, Complaints& complaints) {
  const auto limit = std::chrono::steady_clock::now() + kRoundMax;
  for (size_t rank = 0; rank < lives.size(); ++rank) {
    const auto& life = lives[rank];
    const std::string name = life->program.names()[rank];
    while (!life->ended && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(milliseconds(5));
    if (!life->ended) {
      complaints.push_back(name + " does not end");
      complaints.push_back(what_it_waits_for(*life->node));
      life->node->abort({.kind = ErrorKind::node_stopped, .text = "the test has lost patience"});
    }
    life->thread.join();
    if (life->end->ok()) {
      ++counts_.ended_well;
    } else if (names_a_loss(life->end->error())) {
      ++counts_.ended_by_loss;
    } else {
      complaints.push_back(name + " ended with: " + to_string(life->end->error()));
    }
    look_for_leftovers(*life, name, complaints);
  }
}

Complaints NodeRounds::run(const MakeProgram& program, const RoundOptions& options) {
  Complaints complaints;
  folder_.emplace();
  std::vector<real::FaultProxy*> ways;
  for (const auto& proxy : proxies_) ways.push_back(proxy.get());
  std::vector<std::unique_ptr<Life>> lives;
  for (uint32_t rank = 0; rank < proxies_.size(); ++rank)
    lives.push_back(start(rank, 0, program, options));
  {
    Weather weather(ways, options.seed, milliseconds(60));
    crash_some(lives, program, options, complaints);
    end_all(lives, complaints);
    counts_.breaks += weather.breaks();
  }
  ++counts_.rounds;
  // A connection that waited to be accepted may come after a reset.
  for (const auto& proxy : proxies_) {
    proxy->set_target(0);
    const bool empty = becomes_true([&] {
      proxy->reset_all();
      return proxy->connections() == 0;
    });
    if (!empty) complaints.push_back("a proxy keeps its connections");
  }
  folder_.reset();
  return complaints;
}

}  // namespace rehearsal::endurance
