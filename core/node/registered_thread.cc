#include "core/api/registered_thread.h"

#include "core/api/worker.h"

namespace rehearsal {
namespace {

void end_later(const std::shared_ptr<NodeStrand>& strand,
               const std::shared_ptr<Execution>& execution) {
  strand->post_always([strand, execution] { strand->end(*execution); });
}

}  // namespace

RegisteredThread::RegisteredThread(std::shared_ptr<NodeStrand> strand,
                                   std::shared_ptr<Execution> execution)
    : strand_(std::move(strand)),
      execution_(std::move(execution)),
      adopted_(strand_->adopt_thread(*execution_)) {
  if (adopted_ != nullptr) return;
  end_later(strand_, execution_);
  throw RpcError({.kind = ErrorKind::bad_arguments,
                  .text = "no thread can be registered here: a worker that is recorded has only "
                          "those of the library",
                  .worker = strand_->name(),
                  .function = "register_thread"});
}

// Its nodes are noted while it still runs the execution.
RegisteredThread::~RegisteredThread() {
  end_later(strand_, execution_);
  adopted_.reset();
}

RegisteredThread Worker::register_thread(const std::string& name) const {
  const std::shared_ptr<NodeStrand>& strand = caller()->strand();
  const Execution* const running = strand->running_or_null();
  if (running != nullptr)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "this stack is known to the worker already, as '" +
                            std::string(running->label()) +
                            "'. A std::thread that the main has started registers itself; in the "
                            "simulator there are none: make work run beside the main by rpc_async",
                    .worker = strand->name(),
                    .function = "register_thread"});
  std::shared_ptr<Execution> execution;
  caller()->visit_strand("a thread to be registered",
                         [&] { execution = caller()->node().begin_thread(name); });
  return {strand, std::move(execution)};
}

}  // namespace rehearsal
