#pragma once

#include <ATen/core/ivalue.h>

#include <exception>
#include <string>

namespace rehearsal {

// A value as the bytes of a file that `torch.load(file, weights_only=True)` of Python reads, since
// it names no class but those of tensors: numbers, texts, tensors, and lists, tuples and
// dictionaries of them, whose element types are not kept. Throws c10::Error for other values, and
// for those that check_pickle refuses.
[[nodiscard]] std::string plain_pickle(const c10::IValue& value);

// The value of such bytes, and of those of torch::pickle_save. Lists and dictionaries are of any
// values. Throws c10::Error, or another exception, for bytes that are none; takes no more memory
// than a small multiple of them, and nothing that it gives reaches beyond them.
[[nodiscard]] c10::IValue unpickle(const std::string& bytes);

// Throws c10::Error if `unpickle` would refuse the structure of these bytes (pickle_scan.h): of a
// value that is nested too deeply, say. Looks at no tensor's elements.
void check_pickle(const std::string& bytes);

// The words of such an exception for people: of LibTorch's, without the stack behind them.
[[nodiscard]] std::string in_one_line(const std::exception& error);

}  // namespace rehearsal
