#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/api/program.h"
#include "core/base/result.h"
#include "core/fibers/stack_pool.h"
#include "core/wire/message.h"

// Three workers, of which one may say what is not true while all do a little of everything.
namespace rehearsal::liar {

inline constexpr uint32_t kWorkers = 3;
extern const std::vector<std::string> kNames;

struct Group {
  WorkerId mad;
  bool dynamic = false;
};

// The mad worker works with the others as they do with it, and these, before that and after, with
// each other. An honest main throws only if what the two honest ones do with each other fails.
[[nodiscard]] Program program_of(const Group& group);

struct Lie {
  uint64_t step = 0;  // after so many events of the group
  WorkerId to;
  Message message;
};

// A message that the mad worker sent of its own: to whom, and after how many events.
struct Sent {
  WorkerId to;
  uint64_t step = 0;
  std::shared_ptr<const FrameBody> body;
};

struct Outcome {
  uint64_t steps = 0;
  std::vector<std::optional<Status>> results;  // by worker; none: it has not ended
  std::vector<Sent> sent;
  // Why honest workers have fenced the mad one, and why each other, unless all was done or the
  // other one had ended well.
  std::vector<std::string> fences_of_mad;
  std::vector<std::string> fences_of_others;
};

// Runs the group, without faults, and has the mad worker say the lies in their order.
[[nodiscard]] Outcome run(const Group& group, const Program& program, fibers::StackPool& stacks,
                          const std::vector<Lie>& lies);

// A body that was sent, ready to be sent again.
[[nodiscard]] Message message_of(const FrameBody& body);

}  // namespace rehearsal::liar
