#include "core/optim/archive_dictionary.h"

#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/api/module.h>

namespace rehearsal {
namespace {

c10::impl::GenericDict dictionary_of(torch::serialize::InputArchive& archive) {
  c10::impl::GenericDict dictionary(c10::StringType::get(), c10::AnyType::get());
  for (const std::string& key : archive.keys()) {
    c10::IValue value;
    archive.read(key, value);
    if (value.isObject()) {
      torch::serialize::InputArchive inner;
      archive.read(key, inner);
      value = dictionary_of(inner);
    }
    dictionary.insert(key, value);
  }
  return dictionary;
}

void write_into(torch::serialize::OutputArchive& archive,
                const c10::impl::GenericDict& dictionary) {
  for (const auto& entry : dictionary) {
    const std::string& key = entry.key().toStringRef();
    if (entry.value().isGenericDict()) {
      torch::serialize::OutputArchive inner(archive.compilation_unit());
      write_into(inner, entry.value().toGenericDict());
      archive.write(key, inner);
    } else {
      archive.write(key, entry.value());
    }
  }
}

}  // namespace

std::string archived(const std::function<void(torch::serialize::OutputArchive&)>& save) {
  torch::serialize::OutputArchive archive;
  save(archive);
  std::string bytes;
  archive.save_to([&bytes](const void* data, size_t count) {
    bytes.append(static_cast<const char*>(data), count);
    return count;
  });
  return bytes;
}

c10::impl::GenericDict as_dictionary(const std::string& archive) {
  torch::serialize::InputArchive input;
  input.load_from(archive.data(), archive.size());
  return dictionary_of(input);
}

std::string as_archive(const c10::impl::GenericDict& dictionary) {
  return archived(
      [&](torch::serialize::OutputArchive& archive) { write_into(archive, dictionary); });
}

void read_archive(const std::string& archive,
                  const std::function<void(torch::serialize::InputArchive&)>& load) {
  torch::serialize::InputArchive input;
  input.load_from(archive.data(), archive.size());
  load(input);
}

}  // namespace rehearsal
