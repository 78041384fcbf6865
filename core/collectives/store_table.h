#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/api/call_context.h"

namespace rehearsal {

class FunctionRegistry;

// The keys and values of a store, at the worker where it lies.
// Used through references; its methods run one at a time.
class StoreTable {
 public:
  void set(const std::string& key, const std::string& value);
  // Becomes `desired` if it is `expected`, or if there is none and `expected` is empty. Returns the
  // value that there is then; `expected` if there is none.
  std::string compare_set(const std::string& key, const std::string& expected,
                          const std::string& desired);
  // A number, as decimal digits; none counts as zero. Returns the sum. Throws
  // std::invalid_argument if the value is no number.
  int64_t add(const std::string& key, int64_t amount);
  bool erase(const std::string& key) { return values_.erase(key) > 0; }
  bool has_all(const std::vector<std::string>& keys) const;
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  std::vector<std::string> keys() const;
  // The value, as soon as there is one.
  Future<std::string> when_there(CallContext& call, const std::string& key);

  static void register_in(FunctionRegistry& registry);

 private:
  std::map<std::string, std::string> values_;
  std::map<std::string, std::vector<Promise<std::string>>> waiting_;
};

// The table of that name at this worker, made by whoever asks first. It lives as long as the
// worker.
[[nodiscard]] RRef<StoreTable> store_table(CallContext& call, const std::string& name);

}  // namespace rehearsal
