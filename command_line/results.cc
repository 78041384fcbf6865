#include "command_line/results.h"

#include <ATen/ops/contiguous.h>
#include <c10/core/ScalarType.h>
#include <xxhash.h>

#include <bit>
#include <memory>
#include <stdexcept>
#include <utility>

namespace rehearsal {
namespace {

static_assert(std::endian::native == std::endian::little, "a digest is of little-endian elements");

class Digester {
 public:
  Digester() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_128bits_reset(state_.get()); }

  void bytes(const void* data, size_t size) { XXH3_128bits_update(state_.get(), data, size); }
  void number(int64_t value) { bytes(&value, sizeof value); }
  void text(const std::string& value) {
    number(static_cast<int64_t>(value.size()));
    bytes(value.data(), value.size());
  }

  std::string finish() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex;
    for (const unsigned char byte : canonical.digest) {
      hex.push_back(kDigits[byte >> 4]);
      hex.push_back(kDigits[byte & 15]);
    }
    return hex;
  }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

}  // namespace

TensorDigest digest_of(const at::Tensor& value) {
  const at::Tensor elements = value.detach().cpu().contiguous();
  TensorDigest result{c10::toString(value.scalar_type()), value.sizes().vec(), {}};
  Digester digester;
  digester.text(result.type);
  digester.number(value.dim());
  for (const int64_t size : result.shape) digester.number(size);
  digester.bytes(elements.const_data_ptr(), elements.nbytes());
  result.digest = digester.finish();
  return result;
}

std::string digest_of(const std::vector<at::Tensor>& values) {
  Digester digester;
  for (const at::Tensor& value : values) digester.text(digest_of(value).digest);
  return digester.finish();
}

void Results::tensor(const std::string& name, const at::Tensor& value) {
  add(name, digest_of(value));
}

Results::Declared* Results::declared() {
  const std::optional<Declarer> declarer = running_ ? running_() : std::nullopt;
  if (!declarer) return nullptr;
  Declared& declared = declared_.emplace(declarer->worker, Declared{declarer->life}).first->second;
  if (declared.life < declarer->life) {
    for (const std::string& name : declared.tensors) tensors_.erase(name);
    for (const std::string& name : declared.numbers) numbers_.erase(name);
    declared = {declarer->life};
  }
  return &declared;
}

void Results::add(const std::string& name, TensorDigest digest) {
  Declared* const of_worker = declared();
  if (!tensors_.emplace(name, std::move(digest)).second)
    throw std::invalid_argument("two results are named '" + name + "'");
  if (of_worker != nullptr) of_worker->tensors.insert(name);
}

void Results::number(const std::string& name, double value) {
  Declared* const of_worker = declared();
  if (!numbers_.emplace(name, value).second)
    throw std::invalid_argument("two results are named '" + name + "'");
  if (of_worker != nullptr) of_worker->numbers.insert(name);
}

void Results::merge(const Results& other) {
  for (const auto& [name, digest] : other.tensors_) add(name, digest);
  for (const auto& [name, value] : other.numbers_) number(name, value);
}

std::string Results::digest() const {
  Digester digester;
  for (const auto& [name, tensor] : tensors_) {
    digester.text(name);
    digester.text(tensor.digest);
  }
  return digester.finish();
}

}  // namespace rehearsal
