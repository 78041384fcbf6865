#include "tests/core/rref/rref_fixture.h"

#include <algorithm>
#include <stdexcept>

namespace rehearsal {

Stage* stage = nullptr;

int64_t Counter::add_slowly(CallContext& context, const std::string& other, int64_t by) {
  const int64_t before = value_;
  stage->log.push_back("in " + std::to_string(by));
  if (stage->on_entered) stage->on_entered();
  const int64_t given = context.rpc_sync(other, &answer, by);
  stage->log.push_back("out " + std::to_string(by));
  value_ += given;
  return before;
}

int64_t Counter::enter_twice(CallContext&, const RRef<Counter>& self) {
  return self.with_local([](Counter& counter) { return counter.add(100); });
}

void Counter::count(StreamWriter<int64_t>& out, int64_t times) {
  for (; times > 0; --times) out.write(++value_);
}

int64_t keep(CallContext& context, const RRef<Counter>& rref) {
  stage->log.push_back("keep at " + context.worker_info().name);
  auto& kept = stage->kept[context.worker_info().name];
  kept.push_back(rref);
  return static_cast<int64_t>(kept.size());
}

int64_t look(CallContext& context, const RRef<Counter>& rref) {
  stage->log.push_back("look at " + context.worker_info().name);
  return rref.is_owner() ? 1 : 0;
}

int64_t keep_two(CallContext& context, const RRef<Counter>& first, const RRef<Counter>& second) {
  (void)keep(context, first);
  return keep(context, second);
}

int64_t keep_bundle(CallContext& context, const Bundle& bundle) {
  int64_t count = 0;
  if (bundle.maybe) count = keep(context, *bundle.maybe);
  for (const auto& rref : bundle.list) count = keep(context, rref);
  for (const auto& [name, rref] : bundle.named) count = keep(context, rref);
  return count;
}

RRef<Counter> give(CallContext& context) {
  return stage->kept.at(context.worker_info().name).at(0);
}

Bundle give_bundle(CallContext& context) {
  const RRef<Counter> rref = give(context);
  return {.maybe = rref, .list = {rref, rref}, .named = {{"one", rref}}};
}

void give_all(CallContext& context, StreamWriter<RRef<Counter>>& out) {
  for (const RRef<Counter>& rref : stage->kept.at(context.worker_info().name)) out.write(rref);
}

RRef<Counter> own(CallContext& context, int64_t start) {
  return context.remote<Counter>(context.worker_info().name, start);
}

int64_t forget(CallContext& context) {
  stage->kept.erase(context.worker_info().name);
  return 0;
}

int64_t answer(int64_t number) { return number; }
int64_t fail(int64_t number) { throw std::runtime_error("no " + std::to_string(number)); }
std::unique_ptr<Counter> unsendable(int64_t start) { return std::make_unique<Counter>(start); }

FunctionRegistry rref_functions() {
  FunctionRegistry registry;
  registry.function("keep", &keep).function("look", &look).function("keep_two", &keep_two);
  registry.function("keep_bundle", &keep_bundle).function("give", &give);
  registry.function("give_bundle", &give_bundle).function("own", &own);
  registry.function("forget", &forget).function("answer", &answer).function("fail", &fail);
  registry.function("unsendable", &unsendable).function("give_all", &give_all);
  registry.type<Counter>("Counter")
      .constructor<int64_t>()
      .method("add", &Counter::add)
      .method("add_slowly", &Counter::add_slowly)
      .method("enter_twice", &Counter::enter_twice)
      .method("count", &Counter::count)
      .method("get", &Counter::get)
      .parallel();
  return registry;
}

// ---- the workers ------------------------------------------------------------

std::unique_ptr<doubles::CallNode> RRefFixture::make(uint32_t worker) {
  const std::vector<std::string> all = {"a", "b", "c"};
  return std::make_unique<doubles::CallNode>(
      world, network,
      doubles::CallNodeOptions{.session = {.self = {worker},
                                           .incarnation = {100 * ++lives_ + worker},
                                           .names = {all.begin(), all.begin() + workers_},
                                           .peer_timeout = std::chrono::seconds(1000),
                                           .heartbeat = std::chrono::seconds(500),
                                           .window_bytes = 1 << 24,
                                           .window_frames = window_frames,
                                           .limits = limits,
                                           .mutants = mutants}},
      registry_);
}

void RRefFixture::begin(uint32_t workers) {
  workers_ = workers;
  for (uint32_t worker = 0; worker < workers; ++worker) nodes.push_back(make(worker));
  for (uint32_t one = 0; one < workers; ++one)
    for (uint32_t other = one + 1; other < workers; ++other) network.connect(one, other);
}

void RRefFixture::restart(uint32_t worker) {
  for (uint32_t other = 0; other < workers_; ++other)
    if (other != worker) network.cut(worker, other);
  nodes[worker]->end();
  nodes[worker] = make(worker);
  for (uint32_t other = 0; other < workers_; ++other)
    if (other != worker) network.connect(std::min(worker, other), std::max(worker, other));
}

// ---- the network ------------------------------------------------------------

std::string RRefFixture::text_of(const doubles::ScriptedNetwork::InFlight& item) const {
  const auto name = [](WorkerId id) { return std::string(1, static_cast<char>('a' + id.value)); };
  const std::string link = name(item.from) + ">" + name(item.to) + " ";
  if (item.is_close) return link + "close";
  if (!item.frame.body) return link + "ack";
  Result<Message> message = codec_->decode(*item.frame.body);
  return link + std::string(message_name(message.value().type()));
}

std::vector<std::string> RRefFixture::in_flight() const {
  std::vector<std::string> texts;
  for (const auto& item : network.in_flight())
    if (std::string text = text_of(item); !text.ends_with("ack")) texts.push_back(std::move(text));
  return texts;
}

doubles::ScriptedNetwork::InFlight RRefFixture::hold(const std::string& text) {
  for (size_t at = 0; at < network.in_flight().size(); ++at)
    if (text_of(network.in_flight()[at]) == text) return network.take(at);
  std::string there;
  for (const std::string& other : in_flight()) there += "\n  " + other;
  throw std::logic_error("there is no '" + text + "' in flight; there are:" + there);
}

void RRefFixture::deliver(const std::string& text) {
  put_back(hold(text));
  network.deliver(network.in_flight().size() - 1);
  world.settle();
}

void RRefFixture::deliver_all() {
  while (network.deliver_first()) world.settle();
  world.settle();
}

void RRefFixture::check_invariants() {
  for (const auto& node : nodes)
    ASSERT_EQ(node->rrefs.check_invariants(), "") << "at " << node->strand->name();
}

void RRefFixture::expect_nothing_left() {
  check_invariants();
  for (const auto& node : nodes) {
    EXPECT_EQ(node->rrefs.debug_info(), "") << "at " << node->strand->name();
    EXPECT_EQ(node->rrefs.owner_count(), 0u);
    EXPECT_EQ(node->rrefs.user_count(), 0u);
    EXPECT_EQ(node->rrefs.pending_child_count(), 0u);
    EXPECT_EQ(node->pending.size(), 0u);
    EXPECT_EQ(node->served.size(), 0u);
  }
  EXPECT_EQ(stage_.alive, 0);
}

}  // namespace rehearsal
