#pragma once

#include <map>
#include <string>
#include <string_view>

namespace rehearsal {

// The records of an archive by their names, without the folder's that stands before each.
using StoredRecords = std::map<std::string, std::string_view, std::less<>>;

// Those of a file as LibTorch's PyTorchStreamWriter writes it: a ZIP archive of one folder, in
// which nothing is compressed. Each is a part of `file`, and together they are no larger: reading
// them takes no memory. Throws c10::Error for a file that is none.
[[nodiscard]] StoredRecords stored_records(std::string_view file);

}  // namespace rehearsal
