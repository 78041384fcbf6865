#include <c10/core/CPUAllocator.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "core/checkpoint/pickle_scan.h"
#include "core/checkpoint/plain_pickle.h"
#include "core/checkpoint/stored_records.h"
#include "core/values/tensor_form.h"

// A file may hold anything, and LibTorch believes what it reads. So the archive is taken apart
// here, and its pickle gone through, before LibTorch sees a byte of it.
namespace rehearsal {
namespace {

// A checkpoint whose structure is good.
struct Checked {
  StoredRecords records;
  std::string_view pickle;
  bool has_composites = false;
};

Checked checked(std::string_view file) {
  Checked checked{.records = stored_records(file), .pickle = {}};
  const auto pickle = checked.records.find("data.pkl");
  TORCH_CHECK(pickle != checked.records.end(), "it has no data.pkl");
  checked.pickle = pickle->second;
  checked.has_composites = scan_pickle(checked.pickle, checked.records, file.size());
  return checked;
}

// Indices of sparse tensors are in range, say.
void check_contents(const c10::IValue& value) {
  std::set<const void*> seen;
  value.visit([&seen](const c10::IValue& part) {
    if (!part.isTensor() || !seen.insert(part.toTensor().unsafeGetTensorImpl()).second)
      return false;
    const std::string why = why_bad_contents(part.toTensor());
    TORCH_CHECK(why.empty(), "it has ", why);
    return false;
  });
}

}  // namespace

void check_pickle(const std::string& bytes) { static_cast<void>(checked(bytes)); }

c10::IValue unpickle(const std::string& bytes) {
  const Checked file = checked(bytes);
  // A record is asked for once: no two storages have the same.
  const auto read_record = [&file](const std::string& name) {
    const std::string_view record = file.records.at("data/" + name);
    at::DataPtr memory = c10::GetCPUAllocator()->allocate(record.size());
    std::memcpy(memory.get(), record.data(), record.size());
    return memory;
  };
  std::string_view left = file.pickle;
  const auto read = [&left](char* room, size_t count) {
    const size_t there = std::min(count, left.size());
    std::memcpy(room, left.data(), there);
    left.remove_prefix(there);
    return there;
  };
  // Without a resolver of types there are no classes, and type tags are LibTorch's own.
  torch::jit::Unpickler unpickler(read, nullptr, nullptr, read_record, std::nullopt);
  c10::IValue value = unpickler.parse_ivalue();
  if (file.has_composites) check_contents(value);
  return value;
}

}  // namespace rehearsal
