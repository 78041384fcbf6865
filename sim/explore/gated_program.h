#pragma once

#include <cstdint>
#include <vector>

#include "core/api/program.h"
#include "core/base/future.h"

namespace rehearsal::sim::explore {

// A program whose mains wait twice: before they do anything, once all workers have joined, and
// when they have done everything, before the shutdown. So what lies between can be told apart.
// Workers that only serve wait at the end at once; a main that throws does not wait again.
// `program` outlives it, and it the runs.
class GatedProgram {
 public:
  explicit GatedProgram(const Program& program);
  GatedProgram(const GatedProgram&) = delete;
  GatedProgram& operator=(const GatedProgram&) = delete;

  [[nodiscard]] const Program& program() const { return gated_; }

  // Another run begins.
  void reset();
  // Whether every main waits: those without any wait at the end.
  [[nodiscard]] bool all_wait() const {
    return begin_.size() + end_.size() == gated_.members().size();
  }
  void open_begin();
  // From now on nobody waits at the end.
  void open_end();

 private:
  using Gate = std::vector<Promise<int64_t>>;
  static void wait_at(Gate& gate, const Worker& worker);  // Parks.
  static void open(Gate& gate);

  Program gated_;
  Gate begin_;
  Gate end_;
  bool end_is_open_ = false;
};

}  // namespace rehearsal::sim::explore
