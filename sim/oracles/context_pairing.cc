#include <map>
#include <string>
#include <tuple>

#include "sim/oracles/oracles.h"
#include "sim/oracles/quiet_oracle.h"

namespace rehearsal::sim {
namespace {

class ContextPairing final : public QuietOracle {
 public:
  std::string_view name() const override { return "context pairing"; }
  EventKinds watched() const override {
    return {EventKind::context_opened, EventKind::context_released, EventKind::pass_started,
            EventKind::pass_ended};
  }

  void on_event(const Observation& seen, Findings& findings) override {
    const Event& event = seen.event;
    switch (event.kind) {
      case EventKind::context_opened:
        return begin(contexts_, {seen.life, event.id, 0, 0}, "opened", findings);
      case EventKind::context_released:
        return end(contexts_, {seen.life, event.id, 0, 0}, "released", findings);
      case EventKind::pass_started:
        return begin(passes_, {seen.life, event.id, event.number, event.digest}, "started",
                     findings);
      case EventKind::pass_ended:
        return end(passes_, {seen.life, event.id, event.number, event.digest}, "ended", findings);
      default:
        return;
    }
  }

  void at_end(const ClusterView& cluster, Findings& findings) override {
    for (const LifeView& life : cluster.lives) {
      if (!ended_well(life)) continue;
      report_open(contexts_, life, "was never released there", findings);
      report_open(passes_, life, "never ended there", findings);
    }
  }

 private:
  // Life, id of the context; of a pass: its epoch and its starter's incarnation.
  using Name = std::tuple<net_fake::LifeId, CausalId, uint64_t, uint64_t>;
  using Open = std::map<Name, bool>;  // false once it has been closed

  [[nodiscard]] static std::string describe(const Open& table, const Open& passes,
                                            const Name& name) {
    const auto& [life, id, epoch, starter] = name;
    return (&table == &passes ? "pass " + std::to_string(epoch) + " of context "
                              : std::string("context ")) +
           to_string(id) + " at worker " + std::to_string(life.worker.value);
  }

  void begin(Open& table, const Name& which, std::string_view verb, Findings& findings) {
    if (!table.emplace(which, true).second)
      findings.fail(name(), describe(table, passes_, which), "was " + std::string(verb) + " twice");
  }

  void end(Open& table, const Name& which, std::string_view verb, Findings& findings) {
    const auto found = table.find(which);
    if (found == table.end() || !found->second)
      return findings.fail(name(), describe(table, passes_, which),
                           "was " + std::string(verb) + " without being open");
    found->second = false;
  }

  void report_open(const Open& table, const LifeView& life, const char* what,
                   Findings& findings) const {
    for (const auto& [which, open] : table)
      if (open && std::get<0>(which) == life.id)
        findings.fail(name(), describe(table, passes_, which), what);
  }

  Open contexts_;
  Open passes_;
};

}  // namespace

std::unique_ptr<Oracle> make_context_pairing() { return std::make_unique<ContextPairing>(); }

}  // namespace rehearsal::sim
