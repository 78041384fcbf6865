#include <caffe2/serialize/inline_container.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "core/checkpoint/pickle_scan.h"
#include "core/checkpoint/plain_pickle.h"

// A file may hold anything. LibTorch believes the sizes that an archive and its tensors claim: they
// are compared here with the bytes that are there.
namespace rehearsal {
namespace {

using caffe2::serialize::PyTorchStreamReader;

class Archive final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit Archive(const std::string& bytes) : bytes_(bytes) {}
  size_t size() const override { return bytes_.size(); }
  size_t read(uint64_t at, void* room, size_t count, const char*) const override {
    if (at >= bytes_.size() || count == 0) return 0;  // Of no bytes, `room` may be null.
    const size_t there = std::min(count, bytes_.size() - at);
    std::memcpy(room, bytes_.data() + at, there);
    return there;
  }

 private:
  const std::string& bytes_;
};

// All that the records claim to hold lies in the file: nothing is compressed.
void check_records(PyTorchStreamReader& reader, size_t file_bytes) {
  uint64_t claimed = 0;
  for (const std::string& name : reader.getAllRecords()) {
    const uint64_t bytes = reader.getRecordSize(name);
    TORCH_CHECK(bytes <= file_bytes - claimed, "its records are larger than the file");
    claimed += bytes;
  }
}

// The bytes of each record by the memory that it was read into.
using RecordSizes = std::map<const void*, uint64_t>;

// How many bytes of its storage a tensor reaches; the greatest number: more than there can be.
uint64_t reach_of(const at::Tensor& tensor) {
  constexpr uint64_t kTooFar = UINT64_MAX;
  if (tensor.storage_offset() < 0) return kTooFar;
  auto last = static_cast<uint64_t>(tensor.storage_offset());
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    const int64_t size = tensor.size(i), stride = tensor.stride(i);
    uint64_t far = 0;
    if (size < 0 || stride < 0) return kTooFar;
    if (size == 0) return 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(size - 1), static_cast<uint64_t>(stride),
                               &far) ||
        __builtin_add_overflow(last, far, &last))
      return kTooFar;
  }
  uint64_t bytes = 0;
  return __builtin_mul_overflow(last + 1, tensor.element_size(), &bytes) ? kTooFar : bytes;
}

void check_tensor(const at::Tensor& tensor, const RecordSizes& records) {
  if (!tensor.defined() || tensor.layout() != c10::kStrided || !tensor.has_storage()) return;
  const uint64_t reach = reach_of(tensor);
  const auto record = records.find(tensor.storage().data());
  const uint64_t there = record == records.end() ? 0 : record->second;
  TORCH_CHECK(reach <= there, "a tensor is larger than its record");
}

void check_tensors(const c10::IValue& value, const RecordSizes& records) {
  value.visit([&records](const c10::IValue& part) {
    if (part.isTensor()) check_tensor(part.toTensor(), records);
    return false;
  });
}

}  // namespace

c10::IValue unpickle(const std::string& bytes) {
  PyTorchStreamReader reader(std::make_shared<Archive>(bytes));
  check_records(reader, bytes.size());
  RecordSizes records;
  const auto read_record = [&](const std::string& name) {
    auto [memory, size] = reader.getRecord("data/" + name);
    records[memory.get()] = size;
    return std::move(memory);
  };
  auto [pickle, size] = reader.getRecord("data.pkl");
  const auto* from = static_cast<const char*>(pickle.get());
  scan_pickle({from, size});
  size_t at = 0;
  const auto read = [&, total = size](char* room, size_t count) {
    const size_t there = std::min(count, total - at);
    std::memcpy(room, from + at, there);
    at += there;
    return there;
  };
  // Without a resolver of types there are no classes, and type tags are LibTorch's own.
  torch::jit::Unpickler unpickler(read, nullptr, nullptr, read_record, std::nullopt);
  unpickler.set_version(reader.version());
  c10::IValue value = unpickler.parse_ivalue();
  check_tensors(value, records);
  return value;
}

}  // namespace rehearsal
