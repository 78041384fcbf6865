#pragma once

#include <memory>
#include <string>

#include "core/base/node_strand.h"

namespace rehearsal {

// While it lives, the thread on which Worker::register_thread made it calls and waits as a main
// does. It dies on that thread. May outlive the node: then every use gives node_stopped.
class RegisteredThread {
 public:
  // `execution` has begun. Throws RpcError (bad_arguments) where users have no threads.
  RegisteredThread(std::shared_ptr<NodeStrand> strand, std::shared_ptr<Execution> execution);
  ~RegisteredThread();
  RegisteredThread(const RegisteredThread&) = delete;
  RegisteredThread& operator=(const RegisteredThread&) = delete;

 private:
  const std::shared_ptr<NodeStrand> strand_;
  const std::shared_ptr<Execution> execution_;
  std::unique_ptr<AdoptedThread> adopted_;
};

}  // namespace rehearsal
