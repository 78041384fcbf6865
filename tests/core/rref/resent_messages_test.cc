// Goal: every message of a reference is handled once, whether it is lost with its link and sent
// again, or arrives and its acknowledgement is lost: then the next link's hello tells of it, and it
// is not sent again. Method: a reference is made, passed on and dropped; the link of one message
// after the other is cut, before that has arrived and after.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/core/rref/rref_fixture.h"

namespace rehearsal {
namespace {

struct Cut {
  std::string message;
  bool has_arrived = false;
};

class ResentMessages : public RRefFixture, public ::testing::WithParamInterface<Cut> {
 protected:
  // a makes a reference at b, passes it to c and drops it; c drops it later.
  void run_story(const Cut& cut) {
    begin();
    {
      const RRef<Counter> rref = a().calls.remote<Counter>("b", 5);
      (void)a().calls.rpc_async("c", &keep, rref);
    }
    deliver_all_but(cut);
    EXPECT_EQ(stage_.alive, 1);
    stage_.kept.clear();
    deliver_all_but(cut);
    EXPECT_TRUE(is_cut_);
  }

  [[nodiscard]] size_t arrived_twice() const {
    size_t times = 0;
    for (const auto& node : nodes) times += node->trace.marked("a frame arrived twice");
    return times;
  }

 private:
  void deliver_all_but(const Cut& cut) {
    world.settle();
    while (!network.in_flight().empty()) {
      const doubles::ScriptedNetwork::InFlight first = network.in_flight().front();
      const bool is_next = !is_cut_ && text_of(first) == cut.message;
      const uint32_t one = std::min(first.from.value, first.to.value);
      const uint32_t other = std::max(first.from.value, first.to.value);
      if (!is_next || cut.has_arrived) network.deliver(0);
      if (is_next) {
        is_cut_ = true;
        network.cut(one, other);
        network.connect(one, other);
      }
      world.settle();
    }
  }

  bool is_cut_ = false;
};

TEST_P(ResentMessages, AreHandledOnce) {
  run_story(GetParam());
  EXPECT_EQ(stage_.log, (std::vector<std::string>{"keep at c"}));
  EXPECT_EQ(arrived_twice(), 0u);
  expect_nothing_left();
}

std::vector<Cut> all_cuts() {
  std::vector<Cut> cuts;
  for (const char* message :
       {"a>b Call", "b>a ForkConfirm", "a>c Call", "c>b ForkRequest", "b>c ForkConfirm",
        "c>a ChildAccept", "c>a Response", "a>b UserDelete", "c>b UserDelete"})
    for (const bool has_arrived : {false, true}) cuts.push_back({message, has_arrived});
  return cuts;
}

INSTANTIATE_TEST_SUITE_P(Story, ResentMessages, ::testing::ValuesIn(all_cuts()),
                         [](const auto& info) {
                           std::string name = info.param.message;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char letter) { return letter == '>' || letter == ' '; }, '_');
                           return name + (info.param.has_arrived ? "_again" : "_lost");
                         });

}  // namespace
}  // namespace rehearsal
