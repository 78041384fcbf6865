// Another process of this binary as a copy of this one, by fork alone: it begins in a few
// milliseconds, where LibTorch takes a third of a second of a processor to load, and shares what
// was loaded.
#pragma once

#include <map>
#include <string>

namespace rehearsal::command_line {

// Whether a copy can do all that the binary started anew can do: this process has one thread, which
// is the only one that a copy has, and no device of an accelerator is open, for whose driver a copy
// is a stranger. Never with gcov's counters, which are written as a process ends.
[[nodiscard]] bool can_be_copied();

// To call before a fork: what has been written and lies in a buffer is not written twice.
void flush_streams();

// To call in the copy: makes of it what a program is after exec. Descriptors that are closed on
// exec are closed, signals do what they do by default unless they are ignored, LibTorch's random
// numbers begin anew, and the variables are set.
void begin_copy(const std::map<std::string, std::string>& environment);

// Ends the copy, with what it has written flushed. The destructors of static objects, which are
// those of the process that was copied, do not run.
[[noreturn]] void end_copy(int status);

}  // namespace rehearsal::command_line
