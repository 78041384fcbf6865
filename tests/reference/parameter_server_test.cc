// Goal: a server that answers each trainer once the gradients of all have come, at every worker at
// once. Method: the reference's parameter server, dense and sparse.
#include <ATen/ATen.h>

#include <memory>
#include <vector>

#include "core/api/batcher.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::parameter_server_test {
namespace {

constexpr uint64_t kTrainers = 3;
constexpr int64_t kRounds = 10;

// Adds up all gradients that it was ever given, as the reference's does; a round is complete with
// that of the last trainer.
class Server {
 public:
  explicit Server(CallContext& call)
      : batcher_(call, {.size = kTrainers, .delay = {}},
                 [this](const std::vector<at::Tensor>& gradients) { return average(gradients); }) {}

  Future<at::Tensor> add(const at::Tensor& gradient) { return batcher_.add(gradient); }
  at::Tensor stored() { return stored_; }

 private:
  std::vector<at::Tensor> average(const std::vector<at::Tensor>& gradients) {
    for (const at::Tensor& gradient : gradients)
      stored_ = stored_.defined() ? stored_ + gradient : gradient;
    stored_ = stored_ / static_cast<double>(kTrainers);
    return std::vector<at::Tensor>(gradients.size(), stored_);
  }

  at::Tensor stored_;
  Batcher<at::Tensor, at::Tensor> batcher_;
};

at::Tensor gradient_of(int64_t trainer, int64_t round, bool sparse) {
  const at::Tensor row = at::full({1, 4}, static_cast<double>(trainer + 10 * round));
  if (!sparse) return row;
  return at::sparse_coo_tensor(at::zeros({1, 1}, at::kLong), row, {8, 4});
}

// Whether what it was answered is what the server keeps, in each round.
bool train(CallContext& context, const RRef<Server>& server, bool sparse) {
  bool equal = true;
  for (int64_t round = 0; round < kRounds; ++round) {
    const at::Tensor gradient = gradient_of(context.worker_info().id.value, round, sparse);
    const at::Tensor average = context.rpc_sync(server, &Server::add, gradient);
    const at::Tensor stored = context.rpc_sync(server, &Server::stored);
    equal =
        equal && average.is_sparse() == sparse && at::equal(average.to_dense(), stored.to_dense());
  }
  return equal;
}

Program servers_everywhere(bool sparse) {
  FunctionRegistry registry;
  registry.function("train", &train);
  registry.type<Server>("Server")
      .constructor<CallContext&>()
      .method("add", &Server::add)
      .method("stored", &Server::stored);
  return everywhere(std::move(registry), [sparse](Worker& worker) {
    const RRef<Server> server = worker.remote<Server>(worker.name());
    std::vector<Future<bool>> trained;
    for (uint32_t steps = 1; steps <= kTrainers; ++steps)
      trained.push_back(worker.rpc_async(after(worker, steps), &train, server, sparse));
    for (const auto& one : trained) EXPECT_TRUE(one.wait());
  });
}

// Rows: rpc_test::RpcTest.test_my_parameter_server
TEST(ReferenceParameterServer, EveryTrainerIsAnsweredWithTheAverageOfAll) {
  in_both_worlds(servers_everywhere(false));
}

// Rows: rpc_test::TensorPipeAgentRpcTest.test_my_parameter_server_sparse
TEST(ReferenceParameterServer, TheGradientsMayBeSparse) {
  in_both_worlds(servers_everywhere(true));
}

}  // namespace
}  // namespace rehearsal::reference::parameter_server_test
