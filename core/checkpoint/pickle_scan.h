#pragma once

#include <string_view>

namespace rehearsal {

// Goes through the opcodes of a pickle (those of protocol 2 that LibTorch's reader knows, as
// pickletools of Python lists them) before anything is made of it. LibTorch believes the numbers in
// them: it takes memory for as many remembered values, or as long a text, as one says. Throws
// c10::Error for an opcode that is unknown or cut off, a text that is longer than what is left, and
// a remembered value with a greater number than there were opcodes before it.
void scan_pickle(std::string_view pickle);

}  // namespace rehearsal
