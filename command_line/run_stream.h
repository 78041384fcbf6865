// The files that a run writes as it goes.
#pragma once

#include <fstream>
#include <ostream>
#include <string>

#include "command_line/noting_buffer.h"
#include "command_line/outcome.h"
#include "sim/explain/history_file.h"

namespace rehearsal::command_line {

// A file that a run writes as it goes: its trace, its history or its choices.
class RunStream {
 public:
  // Opens and empties it. No name: there is none.
  explicit RunStream(const std::string& file);
  RunStream(const RunStream&) = delete;
  RunStream& operator=(const RunStream&) = delete;

  // Throws WrongUse, with `flag`, if it could not be opened.
  void require(const std::string& flag) const;

  // Null: there is none.
  [[nodiscard]] std::ostream* stream() { return file_.empty() ? nullptr : &stream_; }
  // One that takes nothing where there is none.
  [[nodiscard]] std::ostream& any() { return stream_; }

  // To call when the run has ended. Closes it; returns "FILE: cannot be written: CAUSE" if not all
  // of it was written, else nothing.
  [[nodiscard]] std::string close();

 private:
  const std::string file_;
  std::filebuf buffer_;
  int open_error_ = 0;
  NotingBuffer noting_{buffer_};
  std::ostream stream_{&noting_};
};

// The files that the settings of a run ask for.
class RunFiles {
 public:
  // Throws WrongUse if there can be no trace.
  explicit RunFiles(const RunSettings& settings);

  // Each is null if it was not asked for.
  [[nodiscard]] std::ostream* trace() { return trace_.stream(); }
  [[nodiscard]] sim::HistorySink* history() { return history_.stream() ? &writer_ : nullptr; }
  [[nodiscard]] std::ostream* choices() { return choices_.stream(); }

  // Closes all when the run has ended, and notes in its outcome which is not whole.
  void close(RunOutcome& outcome);

 private:
  RunStream trace_, history_, choices_;
  sim::HistoryWriter writer_;
};

}  // namespace rehearsal::command_line
