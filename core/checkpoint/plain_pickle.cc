#include "core/checkpoint/plain_pickle.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <utility>
#include <vector>

#include "core/values/tensor_form.h"

namespace rehearsal {
namespace {

// The same with lists and dictionaries of any values: Python makes those of one type by functions
// that it must be told to trust.
c10::IValue of_any_values(const c10::IValue& value) {
  if (value.isList()) {
    c10::impl::GenericList list(c10::AnyType::get());
    for (const c10::IValue& element : value.toListRef()) list.push_back(of_any_values(element));
    return list;
  }
  if (value.isTuple()) {
    std::vector<c10::IValue> elements;
    for (const c10::IValue& element : value.toTupleRef().elements())
      elements.push_back(of_any_values(element));
    return c10::ivalue::Tuple::create(std::move(elements));
  }
  if (value.isGenericDict()) {
    const c10::impl::GenericDict given = value.toGenericDict();
    c10::impl::GenericDict dictionary(given.keyType(), c10::AnyType::get());
    for (const auto& entry : given) dictionary.insert(entry.key(), of_any_values(entry.value()));
    return dictionary;
  }
  return value;
}

}  // namespace

std::string plain_pickle(const c10::IValue& value) {
  std::string pickle;
  torch::jit::Pickler pickler(
      [&pickle](const char* bytes, size_t count) { pickle.append(bytes, count); }, nullptr, nullptr,
      nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(of_any_values(value));
  pickler.stop();

  // Of its size at once: it would grow by copying itself.
  constexpr size_t kBytesBesides = 512;  // of a record: its header, padding and entry in the index
  size_t bytes = pickle.size() + kBytesBesides * (4 + pickler.tensorData().size());
  for (const at::Tensor& tensor : pickler.tensorData()) bytes += tensor.nbytes();
  std::string file;
  file.reserve(bytes);
  caffe2::serialize::PyTorchStreamWriter writer([&file](const void* bytes, size_t count) {
    file.append(static_cast<const char*>(bytes), count);
    return count;
  });
  writer.writeRecord("data.pkl", pickle.data(), pickle.size());
  size_t number = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    const torch::jit::WriteableTensorData data = torch::jit::getWriteableTensorData(tensor);
    writer.writeRecord("data/" + std::to_string(number++), data.data(), data.sizeInBytes());
  }
  writer.writeEndOfFile();
  check_pickle(file);
  return file;
}

std::string in_one_line(const std::exception& error) {
  const auto* of_libtorch = dynamic_cast<const c10::Error*>(&error);
  return of_libtorch == nullptr ? error.what() : first_line(*of_libtorch);
}

}  // namespace rehearsal
