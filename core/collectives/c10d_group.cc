// A process group behind LibTorch's interfaces.
#include "core/api/c10d_group.h"

// The wheel is built with it, and c10d's headers ask for it.
#define USE_DISTRIBUTED
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <utility>

namespace rehearsal {
namespace {

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// One or several operations under way.
class GroupWork final : public c10d::Work {
 public:
  GroupWork(int rank, c10d::OpType type, std::vector<Future<Unit>> parts, Tensors results)
      : Work(rank, type), parts_(std::move(parts)), results_(std::move(results)) {}

  bool isCompleted() override {
    for (const Future<Unit>& part : parts_)
      if (!part.ready()) return false;
    return true;
  }
  bool isSuccess() const override { return exception() == nullptr; }
  std::exception_ptr exception() const override {
    for (const Future<Unit>& part : parts_)
      if (const Result<Unit> result = part.result(); !result.ok())
        return std::make_exception_ptr(RpcError(result.error()));
    return nullptr;
  }
  std::vector<at::Tensor> result() override { return results_; }
  void synchronize() override { wait(); }
  bool wait(std::chrono::milliseconds timeout) override {
    TORCH_CHECK(timeout <= kNoTimeout, "an operation has the time of its process group");
    wait();
    return true;
  }

  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    const auto complete = [future, results = results_](const Result<std::vector<Unit>>& done) {
      if (done.ok())
        future->markCompleted(c10::IValue(results));
      else
        future->setError(std::make_exception_ptr(RpcError(done.error())));
    };
    when_all(parts_.front().core()->strand(), parts_).then(complete);
    return future;
  }

 private:
  void wait() {
    for (const Future<Unit>& part : parts_) part.wait();
  }

  const std::vector<Future<Unit>> parts_;
  const Tensors results_;
};

ReduceOp reduction_of(const c10d::ReduceOp& op) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::average;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::product;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    default:
      TORCH_CHECK(false, "a process group of Rehearsal reduces by sum, average, product, min, max");
  }
}

const at::Tensor& only(const Tensors& tensors) {
  TORCH_CHECK(tensors.size() == 1, "one tensor is expected, not ", tensors.size());
  return tensors.front();
}

void check_time(std::chrono::milliseconds timeout) {
  TORCH_CHECK(timeout == c10d::kUnsetTimeout, "an operation has the time of its process group");
}

// As many parts as there are members, along the first dimension; of these sizes, or all alike.
Tensors parts_of(const at::Tensor& buffer, const std::vector<int64_t>& sizes, uint32_t count) {
  if (!sizes.empty()) return buffer.split_with_sizes(sizes);
  TORCH_CHECK(buffer.dim() > 0 && buffer.size(0) % count == 0, "the first dimension of ",
              buffer.sizes(), " has no ", count, " equal parts");
  return buffer.split(std::max<int64_t>(1, buffer.size(0) / count));
}
// One after another, each of the form of `like`.
Tensors slots_of(const at::Tensor& buffer, const at::Tensor& like, uint32_t count) {
  TORCH_CHECK(buffer.numel() == like.numel() * count && buffer.is_contiguous(),
              "a contiguous buffer for ", count, " tensors of ", like.sizes(), " is expected, not ",
              buffer.sizes());
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.insert(sizes.begin(), count);
  return buffer.view(sizes).unbind();
}

class GroupBackend final : public c10d::Backend {
 public:
  explicit GroupBackend(ProcessGroup group)
      : Backend(static_cast<int>(group.rank()), static_cast<int>(group.size())),
        group_(std::move(group)) {}

  const std::string getBackendName() const override { return "rehearsal"; }

  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::BROADCAST,
                {group_.broadcast_async(only(tensors), rank_of(options.rootRank))}, tensors);
  }
  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return all_reduced(c10d::OpType::ALLREDUCE, {only(tensors)}, options);
  }
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override {
    return all_reduced(c10d::OpType::ALLREDUCE_COALESCED, tensors, options);
  }
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::REDUCE,
                {group_.reduce_async(only(tensors), rank_of(options.rootRank),
                                     reduction_of(options.reduceOp))},
                tensors);
  }
  WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override {
    check_time(options.timeout);
    TORCH_CHECK(outputs.size() == 1, "one list of outputs is expected");
    return work(c10d::OpType::ALLGATHER, {group_.all_gather_async(outputs[0], only(inputs))},
                outputs[0]);
  }
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::_ALLGATHER_BASE,
                {group_.all_gather_async(slots_of(output, input, group_.size()), input)}, {output});
  }
  WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override {
    check_time(options.timeout);
    const Tensors targets = outputs.empty() ? Tensors() : outputs.front();
    return work(c10d::OpType::GATHER,
                {group_.gather_async(targets, only(inputs), rank_of(options.rootRank))}, targets);
  }
  WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                  const c10d::ScatterOptions& options) override {
    check_time(options.timeout);
    const Tensors sources = inputs.empty() ? Tensors() : inputs.front();
    return work(c10d::OpType::SCATTER,
                {group_.scatter_async(only(outputs), sources, rank_of(options.rootRank))}, outputs);
  }
  WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                         const c10d::ReduceScatterOptions& options) override {
    check_time(options.timeout);
    TORCH_CHECK(inputs.size() == 1, "one list of inputs is expected");
    return work(
        c10d::OpType::REDUCE_SCATTER,
        {group_.reduce_scatter_async(only(outputs), inputs[0], reduction_of(options.reduceOp))},
        outputs);
  }
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::_REDUCE_SCATTER_BASE,
                {group_.reduce_scatter_async(output, slots_of(input, output, group_.size()),
                                             reduction_of(options.reduceOp))},
                {output});
  }
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::ALLTOALL, {group_.all_to_all_async(outputs, inputs)}, outputs);
  }
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_sizes,
                        std::vector<int64_t>& input_sizes,
                        const c10d::AllToAllOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::ALLTOALL_BASE,
                {group_.all_to_all_async(parts_of(output, output_sizes, group_.size()),
                                         parts_of(input, input_sizes, group_.size()))},
                {output});
  }
  WorkPtr send(Tensors& tensors, int to, int tag) override {
    return work(c10d::OpType::SEND,
                {group_.send_async(only(tensors), rank_of(to), static_cast<uint32_t>(tag))}, {});
  }
  WorkPtr recv(Tensors& tensors, int from, int tag) override {
    return work(c10d::OpType::RECV,
                {group_.recv_async(only(tensors), rank_of(from), static_cast<uint32_t>(tag))},
                tensors);
  }
  WorkPtr barrier(const c10d::BarrierOptions& options) override {
    check_time(options.timeout);
    return work(c10d::OpType::BARRIER, {group_.barrier_async()}, {});
  }

 private:
  WorkPtr work(c10d::OpType type, std::vector<Future<Unit>> parts, Tensors results) {
    return c10::make_intrusive<GroupWork>(getRank(), type, std::move(parts), std::move(results));
  }
  WorkPtr all_reduced(c10d::OpType type, const Tensors& tensors,
                      const c10d::AllreduceOptions& options) {
    check_time(options.timeout);
    TORCH_CHECK(!tensors.empty(), "a tensor is expected");
    std::vector<Future<Unit>> parts;
    for (const at::Tensor& tensor : tensors)
      parts.push_back(group_.all_reduce_async(tensor, reduction_of(options.reduceOp)));
    return work(type, std::move(parts), tensors);
  }
  static uint32_t rank_of(int64_t rank) {
    TORCH_CHECK(rank >= 0, "there is no rank ", rank);
    return static_cast<uint32_t>(rank);
  }

  const ProcessGroup group_;
};

}  // namespace

c10::intrusive_ptr<c10d::Backend> as_c10d_backend(const ProcessGroup& group) {
  return c10::make_intrusive<GroupBackend>(group);
}

c10::intrusive_ptr<c10d::ProcessGroup> as_c10d_group(const ProcessGroup& group) {
  using Type = c10d::ProcessGroup::BackendType;
  auto made = c10::make_intrusive<c10d::ProcessGroup>(static_cast<int>(group.rank()),
                                                      static_cast<int>(group.size()));
  made->setBackend(c10::DeviceType::CPU, Type::CUSTOM, as_c10d_backend(group));
  made->setDefaultBackend(Type::CUSTOM);
  return made;
}

}  // namespace rehearsal
