#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/base/trace.h"

namespace rehearsal::coverage {

// Counts the branch marks that a run reached. A mark names a rare branch of the product: a response
// that came too late, a frame that was received twice. A test that says it reaches such a branch
// asserts the mark, and so cannot go on passing when it no longer gets there.
//
// It is given to a node as its trace and passes every event on. Nodes of one simulation may share
// one; nodes on different threads may not: give each its own, and `add` them when they have ended.
class Marks final : public Trace {
 public:
  using Counts = std::map<std::string, uint64_t, std::less<>>;

  // `next`, if given, sees every event too. It must outlive this object.
  explicit Marks(Trace* next = nullptr) : next_(next) {}

  void on_event(const Event& event) override;

  [[nodiscard]] bool reached(std::string_view name) const { return count(name) > 0; }

  // How often the branch was taken.
  [[nodiscard]] uint64_t count(std::string_view name) const;

  // All marks that were reached, by name.
  [[nodiscard]] const Counts& counts() const { return counts_; }

  // Adds what another run reached.
  void add(const Marks& other);

  // One line for each mark, name and count: for a message when a mark is missing.
  [[nodiscard]] std::string text() const;

 private:
  Trace* next_;
  Counts counts_;
};

}  // namespace rehearsal::coverage
