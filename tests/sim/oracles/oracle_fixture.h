// An oracle that a test feeds by hand, and what it has found.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {

using net_fake::LifeId;

inline constexpr LifeId kOwner{WorkerId{0}, 0};
inline constexpr LifeId kUser{WorkerId{1}, 0};

inline CausalId id(uint64_t ordinal) { return {{11}, {5, 6}, ordinal}; }

// Feeds one oracle by hand what it watches. A life's incarnation is its worker's id + 100.
class OracleTest : public testing::Test {
 protected:
  void use(std::unique_ptr<Oracle> chosen) { oracle = std::move(chosen); }

  void see(LifeId life, Event event, Duration when = {}) {
    event.worker = life.worker;
    if (!oracle->watched().has(event.kind)) return;
    oracle->on_event({.event = event,
                      .life = life,
                      .incarnation = Incarnation{life.worker.value + 100},
                      .when = Instant{when},
                      .shown = Instant{when}},
                     findings);
  }
  void see(LifeId life, EventKind kind, uint64_t ordinal, uint64_t number = 0) {
    see(life, Event{.kind = kind, .id = id(ordinal), .number = number});
  }
  LifeView view_of(LifeId life, bool crashed = false) {
    return {.id = life,
            .name = life == kOwner ? "owner" : "user",
            .incarnation = {life.worker.value + 100},
            .crashed = crashed,
            .result = crashed ? nullptr : &well};
  }
  void end() { oracle->at_end({.lives = {view_of(kOwner), view_of(kUser)}}, findings); }
  void expect_silent() { EXPECT_FALSE(findings.first()) << findings.first()->message; }
  void expect_finding(std::string_view object, std::string_view message) {
    ASSERT_TRUE(findings.first());
    EXPECT_EQ(findings.first()->oracle, oracle->name());
    EXPECT_NE(findings.first()->object.find(object), std::string::npos) << findings.first()->object;
    EXPECT_NE(findings.first()->message.find(message), std::string::npos)
        << findings.first()->message;
  }

  std::unique_ptr<Oracle> oracle;
  Findings findings;
  const Status well = Unit{};
};

}  // namespace rehearsal::sim
