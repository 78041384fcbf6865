#include "sim/explore/gated_program.h"

#include <utility>

#include "core/api/worker.h"

namespace rehearsal::sim::explore {

GatedProgram::GatedProgram(const Program& program)
    : gated_(program.with_mains([this](const Program::Member& member) {
        return [this, main = member.main](Worker& worker) {
          if (main) {
            wait_at(begin_, worker);
            main(worker);
          }
          if (!end_is_open_) wait_at(end_, worker);
        };
      })) {}

void GatedProgram::reset() {
  begin_.clear();
  end_.clear();
  end_is_open_ = false;
}

void GatedProgram::open_begin() { open(begin_); }

void GatedProgram::open_end() {
  end_is_open_ = true;
  open(end_);
}

void GatedProgram::wait_at(Gate& gate, const Worker& worker) {
  const Promise<int64_t> promise = worker.promise<int64_t>();
  gate.push_back(promise);
  promise.future().wait();
}

void GatedProgram::open(Gate& gate) {
  for (const Promise<int64_t>& promise : std::exchange(gate, {})) promise.complete(int64_t{0});
}

}  // namespace rehearsal::sim::explore
