#pragma once

#include <cstdint>
#include <string_view>

#include "core/checkpoint/stored_records.h"

namespace rehearsal {

// Goes through a pickle before anything is made of it, and says no to what LibTorch's Pickler would
// not have written: LibTorch's Unpickler believes its input, and recurses as deep as it is nested.
// A stack of kinds stands for the stack of values: the opcodes and functions are the Pickler's,
// values are remembered in order and when they are whole, so that none holds itself, and lie at
// most 64 deep in each other. Each storage has a record of its own, and its tensors lie in it. A
// value may be in another more than once, but as a tree it has at most 65,536 + 16 values for each
// byte of the pickle, and at most 1 MiB + 64 bytes of texts and tensors for each byte of the file.
// True if a sparse or a quantized tensor is in it, whose contents are still to be looked at. Throws
// c10::Error. Takes at most a few dozen bytes for each byte of the pickle.
bool scan_pickle(std::string_view pickle, const StoredRecords& records, uint64_t file_bytes);

}  // namespace rehearsal
