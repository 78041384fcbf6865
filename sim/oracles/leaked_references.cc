#include <string>
#include <vector>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

class LeakedReferences final : public QuietOracle {
 public:
  LeakedReferences(bool strict, std::vector<std::string>& found) : strict_(strict), found_(found) {}

  std::string_view name() const override { return "leaked references"; }
  EventKinds watched() const override { return {EventKind::reference_leaked}; }

  void on_event(const Observation& seen, Findings& findings) override {
    found_.emplace_back(seen.event.text);
    if (strict_)
      findings.fail(name(), "worker " + std::to_string(seen.life.worker.value),
                    found_.back() +
                        "; it was still held when the worker shut down: let it go before the main "
                        "returns, or allow it (ClusterOptions::strict_leaks)");
  }

 private:
  const bool strict_;
  std::vector<std::string>& found_;
};

}  // namespace

std::unique_ptr<Oracle> make_leaked_references(bool strict, std::vector<std::string>& found) {
  return std::make_unique<LeakedReferences>(strict, found);
}

}  // namespace rehearsal::sim
