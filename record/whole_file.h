// Files that are written at once.
#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace rehearsal::record {

// Replaces the content of the file `path` by `text`, or makes the file. A reader sees what it held
// before, or all of `text`: that is written to a new file in the same folder, which then takes the
// place of the old one, and is gone if anything fails. Only a process that is killed meanwhile
// leaves one behind (.unfinished-PID-N). A link, a pipe and a device are written in place. The
// error (storage) is "PATH: cannot be written: CAUSE".
[[nodiscard]] Status write_whole_file(const std::string& path, std::string_view text);

// Whether `write_whole_file` could write a little there, with the same error. Leaves everything as
// it is.
[[nodiscard]] Status check_whole_file(const std::string& path);

}  // namespace rehearsal::record
