// Two processes on loopback for benchmarks: a server and whoever calls it.
#pragma once

#include <ATen/core/Tensor.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "core/api/worker.h"
#include "real_net/worker/real_node.h"

namespace rehearsal::bench {

// A child process, and a pair of sockets to tell each other numbers.
class Peer {
 public:
  // Runs `body` in a child, which then ends.
  explicit Peer(const std::function<void(Peer&)>& body);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void tell(uint16_t port);
  uint16_t hear();

 private:
  pid_t child_ = 0;
  real::FileDescriptor control_;
};

// The functions of the server. The first runs inline.
int64_t add(int64_t a, int64_t b);
int64_t bytes_of(const at::Tensor& tensor);
at::Tensor echo_tensor(const at::Tensor& tensor);
at::Tensor first_of(const at::Tensor& tensor);

struct ServerOptions {
  std::string secret;  // the link is under TLS; empty: it is plain
  real::Protection protection = real::Protection::tls;
  // Makes the devices of a process, in it; they outlive `with_server`. Tensors on the first go to
  // the last of the other process. Empty: there are none.
  std::function<DevicesHere()> devices;
  uint64_t lend_from = kLendFrom;  // RealNodeOptions
};

// Runs `caller` as a worker of this process; "server" is another process. The error with which it
// ended, if it did.
Status with_server(const std::function<void(Worker&, real::RealNode&)>& caller,
                   const ServerOptions& options = {});

}  // namespace rehearsal::bench
