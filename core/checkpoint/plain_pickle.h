#pragma once

#include <ATen/core/ivalue.h>

#include <exception>
#include <string>

namespace rehearsal {

// A value as the bytes of a file that `torch.load(file, weights_only=True)` of Python reads, since
// it names no class but those of tensors: numbers, texts, tensors, and lists, tuples and
// dictionaries of them, whose element types are not kept. Throws c10::Error for other values.
[[nodiscard]] std::string plain_pickle(const c10::IValue& value);

// The value of such bytes, and of those of torch::pickle_save. Lists and dictionaries are of any
// values. Throws c10::Error, or another exception, for bytes that are none; nothing that it gives
// reaches beyond the bytes.
[[nodiscard]] c10::IValue unpickle(const std::string& bytes);

// The words of such an exception for people: of LibTorch's, without the stack behind them.
[[nodiscard]] std::string in_one_line(const std::exception& error);

}  // namespace rehearsal
