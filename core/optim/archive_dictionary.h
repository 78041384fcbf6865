#pragma once

#include <ATen/core/Dict.h>
#include <torch/serialize/archive.h>

#include <functional>
#include <string>

// LibTorch's archives, by which its optimizers save themselves, as dictionaries.
namespace rehearsal {

// The bytes of what `save` writes: a copy of all that it had.
[[nodiscard]] std::string archived(
    const std::function<void(torch::serialize::OutputArchive&)>& save);

// Archives within it become dictionaries. Throws c10::Error for bytes that are none.
[[nodiscard]] c10::impl::GenericDict as_dictionary(const std::string& archive);

// An archive of a dictionary's values, of which dictionaries become archives within it.
[[nodiscard]] std::string as_archive(const c10::impl::GenericDict& dictionary);

// Throws what `load` throws.
void read_archive(const std::string& archive,
                  const std::function<void(torch::serialize::InputArchive&)>& load);

}  // namespace rehearsal
