#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/pipeline_seat.h"
#include "core/base/unique_function.h"

namespace rehearsal {

// The turns of the stages of a pipeline that live at one worker: one action at a time, in a given
// order. Its table belongs to the strand; the methods may be called anywhere, and never park.
class PipelineTurns : public std::enable_shared_from_this<PipelineTurns> {
 public:
  PipelineTurns(std::shared_ptr<NodeStrand> strand, std::vector<PipelineAction> order);

  // As PipelineSeat; `begun` is called once, on the strand.
  void begin(const PipelineAction& action, UniqueFunction<void(Status)> begun);
  // Once or more often, also for an action that never began: then its turn passes.
  void end(const PipelineAction& action);
  void end_backwards(uint32_t micro_batch);
  void abandon(const std::string& reason);
  [[nodiscard]] Future<std::vector<PipelineSpan>> spans();

  [[nodiscard]] const std::shared_ptr<NodeStrand>& strand() const { return strand_; }
  // Whether the order divides the passes backward. Any thread.
  [[nodiscard]] bool divides_backwards() const { return divides_backwards_; }

 private:
  struct Entry {
    UniqueFunction<void(Status)> waiting;  // or empty
    int64_t began = -1;
    int64_t ended = -1;
    bool done = false;
  };

  // On the strand.
  void take_begin(const PipelineAction& action, UniqueFunction<void(Status)> begun);
  void take_end(const PipelineAction& action);
  void take_abandon(const std::string& reason);
  [[nodiscard]] int64_t now() const;
  [[nodiscard]] Error error(const std::string& text) const;

  const std::shared_ptr<NodeStrand> strand_;
  const std::vector<PipelineAction> order_;
  const bool divides_backwards_;
  std::map<PipelineAction, Entry> entries_;
  size_t next_ = 0;  // in order_: the one whose turn it is
  std::optional<std::string> abandoned_;
};

}  // namespace rehearsal
