#pragma once

#include <functional>

#include "net_fake/decisions.h"

namespace rehearsal::sim {

// Decisions that a test gives.
class ScriptedDecisions final : public net_fake::Decisions {
 public:
  using Script = std::function<uint64_t(const net_fake::Key&, uint64_t n)>;
  explicit ScriptedDecisions(Script script) : script_(std::move(script)) {}
  uint64_t choose(const net_fake::Key& key, uint64_t n) override { return script_(key, n); }

 private:
  Script script_;
};

}  // namespace rehearsal::sim
