#pragma once

#include <c10/core/ScalarType.h>

#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "core/checkpoint/pickle_value.h"
#include "core/checkpoint/stored_records.h"

namespace rehearsal {

// The functions that the pickle of a checkpoint calls, and what must hold of their arguments: each
// tensor lies in a storage, each storage in a record of its own. All throw c10::Error.
class PickleFunctions {
 public:
  // Both outlive it.
  PickleFunctions(const StoredRecords& records, const PickleHeap& heap)
      : records_(records), heap_(heap) {}

  // A function by its name: one of those that LibTorch's Pickler writes.
  [[nodiscard]] static PickleValue function(std::string_view module, std::string_view name);

  // The value that a function returns. The arguments are a tuple.
  [[nodiscard]] PickleValue call(const PickleValue& function, const PickleValue& arguments) const;

  // The storage that a tuple describes: that of a record which no other storage has.
  [[nodiscard]] PickleValue storage(const PickleValue& description);

  // How many bytes of texts and tensors a value may have in all, each counted as often as it is
  // there.
  [[nodiscard]] static uint64_t bytes_max(uint64_t file_bytes) {
    return (uint64_t{1} << 20) + 64 * file_bytes;
  }

 private:
  using Arguments = std::span<const PickleValue>;
  struct Storage {
    c10::ScalarType type = c10::ScalarType::Undefined;
    uint64_t bytes = 0;
  };

  [[nodiscard]] PickleValue tensor(Arguments given, bool is_quantized) const;
  [[nodiscard]] PickleValue sparse_tensor(Arguments given) const;
  void check_quantizer(const PickleValue& given, std::span<const int64_t> sizes) const;
  [[nodiscard]] PickleValue with_type(Arguments given) const;
  [[nodiscard]] PickleValue device(Arguments given) const;
  [[nodiscard]] std::vector<int64_t> numbers_in(const PickleValue& tuple) const;

  const StoredRecords& records_;
  const PickleHeap& heap_;
  std::vector<Storage> storages_;
  std::set<std::string_view> taken_;  // the records that have a storage, as `heap_` names them
};

}  // namespace rehearsal
