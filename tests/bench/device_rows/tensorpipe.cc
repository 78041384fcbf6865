#include "tests/bench/device_rows/tensorpipe.h"

#include <ATen/Parallel.h>
#include <torch/csrc/distributed/autograd/context/container.h>
#include <torch/csrc/distributed/rpc/request_callback_no_python.h>
#include <torch/csrc/distributed/rpc/rref_context.h>
#include <torch/csrc/distributed/rpc/script_call.h>
#include <torch/csrc/distributed/rpc/script_resp.h>
#include <torch/csrc/distributed/rpc/tensorpipe_agent.h>
#include <torch/csrc/distributed/rpc/utils.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unordered_map>
#include <vector>

#include "tests/bench/server_process.h"

namespace rehearsal::bench {
namespace {

namespace rpc = torch::distributed::rpc;

constexpr int kServer = 0;
constexpr int kCaller = 1;
const std::string kNames[] = {"server", "caller"};

using StorePtr = c10::intrusive_ptr<c10d::Store>;

StorePtr store_of(int rank, uint16_t port) {
  c10d::TCPStoreOptions options;
  options.isServer = rank == kServer;
  options.numWorkers = 2;
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(60);
  options.port = port;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

rpc::TensorPipeRpcBackendOptions agent_options(const std::string& transport, bool on_devices) {
  std::optional<std::vector<std::string>> transports;
  std::optional<std::vector<std::string>> channels;
  if (transport != "auto") {
    transports = {transport};
    channels = {"basic"};
    if (on_devices) channels->push_back("cuda_basic");
  }
  return {/*numWorkerThreads=*/4, transports, channels, /*rpc_timeout=*/60, "env://"};
}

std::shared_ptr<rpc::TensorPipeAgent> agent_of(const TensorPipeOptions& given, int rank,
                                               const DevicesHere& here, const StorePtr& store) {
  auto options = agent_options(given.transport, here.count > 0);
  std::unordered_map<std::string, rpc::DeviceMap> reverse;
  std::vector<c10::Device> devices;
  if (here.count > 0) {
    const c10::Device from = here.at(0);
    const c10::Device to = here.at(here.count - 1);
    devices = {rank == kServer ? to : from};
    if (rank == kServer) reverse[kNames[kCaller]] = {{to, from}};
    if (rank == kCaller) options.setDeviceMap(kNames[kServer], {{from, to}});
  }
  torch::distributed::autograd::DistAutogradContainer::init(static_cast<int64_t>(rank));
  auto agent = std::make_shared<rpc::TensorPipeAgent>(
      c10::make_intrusive<c10d::PrefixStore>("rpc", store), kNames[rank],
      static_cast<rpc::worker_id_t>(rank), 2, options, reverse, devices,
      std::make_unique<rpc::RequestCallbackNoPython>());
  rpc::RpcAgent::setCurrentRpcAgent(agent);
  agent->setTypeResolver(std::make_shared<rpc::TypeResolver>([](const c10::QualifiedName&) {
    return c10::StrongTypePtr(nullptr, at::TensorType::get());
  }));
  agent->start();
  return agent;
}

void leave(rpc::TensorPipeAgent& agent) {
  agent.join(/*shutdown=*/true);
  rpc::RRefContext::getInstance().delAllUsersAndUnforkedOwners(std::chrono::seconds(2));
  agent.shutdown();
}

// The first element comes back when all are there.
void push(rpc::TensorPipeAgent& agent, const at::Tensor& tensor) {
  static const std::shared_ptr<torch::jit::Operator> select = torch::jit::getOperatorForLiteral(
      "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)");
  const rpc::WorkerInfo& server = agent.getWorkerInfo(kNames[kServer]);
  std::vector<at::IValue> arguments{tensor, int64_t{0}, int64_t{0}};
  const auto answer = agent.send(server, rpc::ScriptCall(select, std::move(arguments)).toMessage(),
                                 /*rpcTimeoutSeconds=*/60, agent.getDeviceMap(server));
  answer->waitAndThrow();
  const rpc::Message& message = *answer->constValue().toCustomClass<rpc::Message>();
  rpc::MessageType type = message.type();
  const auto response = rpc::deserializeResponse(message, type);
  (void)static_cast<rpc::ScriptResp&>(*response).value().toTensor().item<float>();
}

bool run(const std::function<void()>& body) {
  try {
    body();
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "TensorPipe: %s\n", error.what());
    return false;
  }
}

}  // namespace

bool with_tensorpipe(const TensorPipeOptions& options,
                     const std::function<void(const Push&)>& caller) {
  at::set_num_threads(1);
  Peer peer([&](Peer& parent) {
    run([&] {
      const DevicesHere devices = options.devices();
      const StorePtr store = store_of(kServer, 0);
      parent.tell(static_cast<c10d::TCPStore&>(*store).getPort());
      leave(*agent_of(options, kServer, devices, store));
    });
  });
  return run([&] {
    const uint16_t port = peer.hear();
    const DevicesHere devices = options.devices();
    const auto agent = agent_of(options, kCaller, devices, store_of(kCaller, port));
    caller([&](const at::Tensor& tensor) { push(*agent, tensor); });
    leave(*agent);
  });
}

}  // namespace rehearsal::bench
