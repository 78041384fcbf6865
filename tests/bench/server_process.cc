#include "tests/bench/server_process.h"

#include <ATen/Parallel.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "core/api/program.h"

namespace rehearsal::bench {

using real::FileDescriptor;
using real::RealNode;
using real::RealNodeOptions;

Peer::Peer(const std::function<void(Peer&)>& body) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  child_ = fork();
  control_ = FileDescriptor(ends[child_ == 0 ? 1 : 0]);
  FileDescriptor(ends[child_ == 0 ? 0 : 1]).reset();
  if (child_ != 0) return;
  body(*this);
  std::_Exit(0);
}

Peer::~Peer() {
  control_.reset();
  waitpid(child_, nullptr, 0);
}

void Peer::tell(uint16_t port) {
  if (write(control_.get(), &port, sizeof port) != sizeof port) std::abort();
}

uint16_t Peer::hear() {
  uint16_t port = 0;
  if (read(control_.get(), &port, sizeof port) != sizeof port) std::_Exit(1);
  return port;
}

int64_t add(int64_t a, int64_t b) { return a + b; }
int64_t bytes_of(const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); }
at::Tensor echo_tensor(const at::Tensor& tensor) { return tensor; }
at::Tensor first_of(const at::Tensor& tensor) { return tensor.select(0, 0).clone(); }

namespace {

Program program_of(const Program::Main& caller, const DevicesHere& devices) {
  FunctionRegistry registry;
  registry.function("add_inline", &add).runs_inline();
  registry.function("bytes_of", &bytes_of);
  registry.function("echo", &echo_tensor);
  registry.function("first", &first_of);
  Program program(std::move(registry));
  program.worker("server", [](Worker&) {}).worker("caller", caller);
  if (devices.count > 0)
    program.device_map("server", {{0, static_cast<DeviceNumber>(devices.count - 1)}});
  return program;
}

RealNodeOptions options_of(uint32_t rank, const DevicesHere& devices, const ServerOptions& given) {
  RealNodeOptions options;
  options.node.devices = devices;
  options.node.id = {rank};
  options.node.incarnation = incarnation_of({rank}, 1);
  options.node.names = {"server", "caller"};
  options.lend_from = given.lend_from;
  if (!given.secret.empty())
    options.transport.credentials = real::Credentials::make({.kind = real::Auth::Kind::secret,
                                                             .secret = given.secret,
                                                             .files = {},
                                                             .protection = given.protection})
                                        .or_throw();
  return options;
}

}  // namespace

Status with_server(const std::function<void(Worker&, RealNode&)>& caller,
                   const ServerOptions& options) {
  at::set_num_threads(1);
  const auto make_devices = options.devices ? options.devices : [] { return DevicesHere{}; };
  Peer peer([&](Peer& parent) {
    const DevicesHere devices = make_devices();
    const Program program = program_of([](Worker&) {}, devices);
    RealNode node(options_of(0, devices, options), program);
    parent.tell(node.address().port);
    node.set_address({1}, {"127.0.0.1", parent.hear()});
    (void)node.run();
  });
  RealNode* self = nullptr;
  const DevicesHere devices = make_devices();
  const Program program = program_of([&](Worker& worker) { caller(worker, *self); }, devices);
  RealNode node(options_of(1, devices, options), program);
  self = &node;
  node.set_address({0}, {"127.0.0.1", peer.hear()});
  peer.tell(node.address().port);
  return node.run();
}

}  // namespace rehearsal::bench
