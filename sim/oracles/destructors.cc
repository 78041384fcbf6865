#include <string>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

class Destructors final : public QuietOracle {
 public:
  std::string_view name() const override { return "destructors"; }
  EventKinds watched() const override { return {EventKind::destructor_failed}; }

  void on_event(const Observation& seen, Findings& findings) override {
    findings.fail(name(), "worker " + std::to_string(seen.life.worker.value),
                  "the destructor of a " + std::string(seen.event.text) +
                      " has let an exception out: " + std::string(seen.event.value) +
                      "; what it had yet to do is not done: catch what its calls may throw");
  }
};

}  // namespace

std::unique_ptr<Oracle> make_destructors() { return std::make_unique<Destructors>(); }

}  // namespace rehearsal::sim
