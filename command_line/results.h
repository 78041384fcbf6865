// The values that a run declares as its result: named tensors and named numbers. Of a tensor only
// its digest is kept, so that results of any size cross process borders and can be compared later.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rehearsal {

struct TensorDigest {
  std::string type;  // of its elements, as LibTorch names it
  std::vector<int64_t> shape;
  std::string digest;  // 32 hexadecimal digits
  bool operator==(const TensorDigest&) const = default;
};

class Results {
 public:
  // A worker, by its number, and which of its lives.
  struct Declarer {
    uint32_t worker = 0;
    uint32_t life = 0;
  };

  // Each throws std::invalid_argument if the name is taken. The first result of a worker that has
  // come back takes the place of all that its earlier lives have declared.
  void tensor(const std::string& name, const at::Tensor& value);
  void number(const std::string& name, double value);
  void add(const std::string& name, TensorDigest digest);

  // `running` says whose code it is that declares; nothing: of no worker. Without it, or where it
  // is null, lives are not told apart. It is called for as long as it is set.
  void set_declarer(std::function<std::optional<Declarer>()> running) {
    running_ = std::move(running);
  }

  // Takes what another worker declared. Throws as above.
  void merge(const Results& other);

  // Of all tensors with their names, whatever the order in which they were declared, and whichever
  // worker declared them. 32 hexadecimal digits.
  [[nodiscard]] std::string digest() const;

  [[nodiscard]] const std::map<std::string, TensorDigest>& tensors() const { return tensors_; }
  [[nodiscard]] const std::map<std::string, double>& numbers() const { return numbers_; }

 private:
  // The names that the latest life of a worker has declared.
  struct Declared {
    uint32_t life = 0;
    std::set<std::string> tensors = {}, numbers = {};
  };
  // Of whoever declares now, without what earlier lives have declared; null: no worker.
  [[nodiscard]] Declared* declared();

  std::function<std::optional<Declarer>()> running_;
  std::map<uint32_t, Declared> declared_;  // by worker
  std::map<std::string, TensorDigest> tensors_;
  std::map<std::string, double> numbers_;
};

// XXH3, 128 bits, of the type, the shape and the elements in order, bit for bit.
[[nodiscard]] TensorDigest digest_of(const at::Tensor& value);

// One digest for a list of tensors, in its order.
[[nodiscard]] std::string digest_of(const std::vector<at::Tensor>& values);

}  // namespace rehearsal
