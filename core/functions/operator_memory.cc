#include "core/functions/operator_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <memory>
#include <string>

namespace rehearsal {
namespace {

// Of the kinds of LibTorch's, one that it does not use itself.
constexpr c10::DebugInfoKind kKind = c10::DebugInfoKind::INFERENCE_CONTEXT;

class Budget final : public c10::DebugInfoBase {
 public:
  explicit Budget(uint64_t bytes_max) : bytes_max_(bytes_max) {}
  void take(uint64_t bytes) {
    if (bytes > bytes_max_ - taken_) refuse_memory(bytes, bytes_max_);
    taken_ += bytes;
  }

 private:
  const uint64_t bytes_max_;
  uint64_t taken_ = 0;
};

// Counts what is asked for, and passes it on.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator* inner) : inner_(inner) {}

  c10::DataPtr allocate(size_t bytes) override {
    // Nothing else in this process puts anything under this kind.
    if (auto* budget = dynamic_cast<Budget*>(c10::ThreadLocalDebugInfo::get(kKind)))
      budget->take(bytes);
    return inner_->allocate(bytes);
  }
  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return inner_->raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    inner_->copy_data(to, from, bytes);
  }

 private:
  c10::Allocator* const inner_;
};

void put_in_front() {
  static CountingAllocator counting(c10::GetCPUAllocator());
  static const bool done = [] {
    c10::SetCPUAllocator(&counting);
    return true;
  }();
  (void)done;
}

std::shared_ptr<Budget> budget_of(uint64_t bytes_max) {
  put_in_front();
  return std::make_shared<Budget>(bytes_max);
}

}  // namespace

OperatorMemory::OperatorMemory(uint64_t bytes_max) : guard_(kKind, budget_of(bytes_max)) {}

void refuse_memory(uint64_t bytes, uint64_t bytes_max) {
  throw MemoryRefused("it asks for " + std::to_string(bytes) +
                      " bytes, and all of its tensors may take " + std::to_string(bytes_max) +
                      ": FunctionRegistry::operator_memory_max sets how many, and a registered "
                      "function may take any");
}

}  // namespace rehearsal
