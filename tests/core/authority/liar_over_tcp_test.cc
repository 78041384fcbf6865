#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/hash.h"
#include "core/wire/protobuf_codec.h"
#include "record/record_file.h"
#include "sim/world/message_fields.h"
#include "tests/core/authority/liar_group.h"
#include "tests/effort.h"
#include "tests/real_net/support/loopback_group.h"
#include "tests/temporary_folder.h"

// The same over TCP: one of three real workers says something that is not true, at a drawn moment.
namespace rehearsal {
namespace {

using liar::Group;
using liar::kNames;
using liar::kWorkers;
using sim::fields_of;

// After a lie; by then the others have refused it, if they do.
constexpr auto kTimeToTell = std::chrono::milliseconds(250);

// So that a worker that is waited for in vain is noticed in seconds.
real::GroupOptions quick() {
  real::GroupOptions options;
  options.node.peer_timeout = std::chrono::seconds(2);
  options.node.heartbeat = std::chrono::milliseconds(200);
  options.node.rpc_timeout = std::chrono::seconds(5);
  options.node.join_timeout = options.node.shutdown_timeout = std::chrono::seconds(5);
  return options;
}

class Fences final : public Trace {
 public:
  explicit Fences(WorkerId mad) : mad_(mad) {}
  void on_event(const Event& event) override {
    if (event.kind != EventKind::peer_fenced || event.peer != mad_) return;
    accused_ |= event.text.find("broke the protocol: ") != std::string::npos ||
                event.text.find("malformed message: ") != std::string::npos;
  }
  [[nodiscard]] bool accused() const { return accused_; }

 private:
  const WorkerId mad_;
  bool accused_ = false;
};

class LiarOverTcp : public ::testing::TestWithParam<Group> {
 protected:
  // One message of each kind that the mad worker says when it does not lie, from the records of the
  // others.
  void overhear() {
    real::GroupOptions options = quick();
    options.record_folder = folder_.path().string();
    {
      real::LoopbackGroup group(program_, options);
      for (const Status& end : group.run()) ASSERT_TRUE(end.ok()) << to_string(Status(end).error());
    }
    const std::unique_ptr<Codec> codec = make_protobuf_codec();
    for (uint32_t rank = 0; rank < kWorkers; ++rank) {
      if (WorkerId{rank} == group_.mad) continue;
      const auto record = record::read_record(folder_.file(kNames[rank] + ".record")).or_throw();
      for (const record::Item& item : record->items) {
        const auto* frame = std::get_if<record::FrameReceived>(&item);
        if (frame == nullptr || !frame->has_body || frame->peer != group_.mad) continue;
        auto body = std::make_shared<FrameBody>();
        body->envelope = frame->envelope;
        for (const auto& part : frame->segments) {
          auto bytes = std::make_shared<std::string>(part.bytes);
          body->segments.push_back(
              {bytes, reinterpret_cast<std::byte*>(bytes->data()), bytes->size(), {}});
        }
        const Message message = liar::message_of(*body);
        overheard_.try_emplace(message.type(), Overheard{WorkerId{rank}, std::move(body)});
      }
    }
    ASSERT_GT(overheard_.size(), 10u);
  }

  // The mad worker says it so many milliseconds after it has joined.
  void say(const Message& lie, WorkerId to, std::chrono::milliseconds when,
           const std::string& what) {
    std::vector<Fences> fences(kWorkers, Fences(group_.mad));
    real::GroupOptions options = quick();
    for (Fences& one : fences) options.traces.push_back(&one);
    {
      real::LoopbackGroup group(program_, options);
      real::RealNode& mad = group.node(group_.mad.value);
      std::atomic<bool> over{false};
      std::thread liar([&] {
        while (!mad.joined() && !over) std::this_thread::sleep_for(std::chrono::microseconds(200));
        std::this_thread::sleep_for(when);
        mad.runtime().post([&] {
          if (!mad.node().ended()) mad.node().say(to, lie);
        });
        // A mad worker that nobody has given up may keep the others from leaving.
        std::this_thread::sleep_for(kTimeToTell);
        mad.abort({.kind = ErrorKind::node_stopped, .text = "the test has ended it"});
      });
      const std::vector<Status> ends = group.run();
      over = true;
      liar.join();
      for (uint32_t rank = 0; rank < kWorkers; ++rank) {
        if (WorkerId{rank} == group_.mad || ends[rank].ok()) continue;
        // It has lost the mad worker, or another one that says that it ended for this.
        const Error error = Status(ends[rank]).error();
        const std::string& mad_name = kNames[group_.mad.value];
        EXPECT_TRUE(error.worker == mad_name ||
                    error.text.find("worker '" + mad_name + "'") != std::string::npos)
            << what << ": " << to_string(error);
      }
    }
    for (const Fences& one : fences) refused_ += one.accused() ? 1 : 0;
    ++tried_;
  }

  struct Overheard {
    WorkerId to;
    std::shared_ptr<const FrameBody> body;
  };

  const Group group_ = GetParam();
  const Program program_ = liar::program_of(group_);
  const TemporaryFolder folder_;
  std::map<uint32_t, Overheard> overheard_;
  uint64_t tried_ = 0;
  uint64_t refused_ = 0;
};

TEST_P(LiarOverTcp, NeitherEndsAnHonestWorkerNorPartsTwo) {
  overhear();
  const uint64_t each = every(48);
  uint64_t said = group_.mad.value * 7;
  for (uint32_t type = 1; type <= sim::kMessageTypes; ++type) {
    const auto known = overheard_.find(type);
    const auto fresh = [&] {
      return known == overheard_.end() ? sim::empty_message(type)
                                       : liar::message_of(*known->second.body);
    };
    const WorkerId to =
        known != overheard_.end() ? known->second.to : WorkerId{(group_.mad.value + 1) % kWorkers};
    Message counted = fresh();
    for (size_t field = 0; field < fields_of(counted).size(); ++field)
      for (const uint64_t value : {uint64_t{0}, UINT64_MAX, uint64_t{kWorkers}, 0x5eed'5eedul}) {
        if (++said % each != 0) continue;
        Message lie = fresh();
        auto fields = fields_of(lie);
        const std::string what = fields[field].name + " = " + std::to_string(value);
        fields[field].set(value);
        const auto* marks = std::get_if<Marks>(&lie.content);
        if (marks != nullptr && marks->marks.empty()) continue;
        SCOPED_TRACE(what);
        say(lie, to, std::chrono::milliseconds(mix(said, 1) % 12), what);
      }
  }
  std::cout << tried_ << " messages, of which " << refused_ << " were refused\n";
  EXPECT_GT(tried_, 10u);
  EXPECT_GT(refused_, tried_ / 10);
}

INSTANTIATE_TEST_SUITE_P(Groups, LiarOverTcp,
                         ::testing::Values(Group{WorkerId{0}}, Group{WorkerId{2}},
                                           Group{WorkerId{2}, true}),
                         [](const auto& info) {
                           return kNames[info.param.mad.value] + "_is_mad" +
                                  (info.param.dynamic ? "_in_a_dynamic_group" : "");
                         });

}  // namespace
}  // namespace rehearsal
