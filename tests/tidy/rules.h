#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/tidy/source_text.h"

namespace rehearsal::tidy {

// One place that breaks a house rule.
struct Finding {
  std::string path;
  int line = 0;
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const Finding& finding);

using Findings = std::vector<Finding>;

// Which folders and which outside headers a file may include (the table in tests/README.md).
Findings check_includes(const SourceText& source);

// Words that tell core where it runs, and words that make a run depend on anything but its seed.
Findings check_words(const SourceText& source);

// Length of the file and of its functions, own header first, `#pragma once`, captures by [=].
Findings check_shape(const SourceText& source);

// For every text file: width, notes that must not reach main, paths that exist on one machine only.
Findings check_lines(const std::string& path, std::string_view text);

// No assertion of a test bounds a time that was measured on the wall from above: it would hang on
// the speed of the machine.
Findings check_wall_time(const SourceText& source);

// The files of a test go into a TemporaryFolder: no test finds a temporary path by other means.
Findings check_temporary_files(const SourceText& source);

// A mark names one branch, and some test asserts it.
Findings check_marks(const std::vector<SourceText>& sources);

// Every .cc file must be compiled: `compiled` are paths from the root of the repository.
Findings check_targets(const std::vector<std::string>& sources,
                       const std::vector<std::string>& compiled);

// No sentence of a comment has "who" or "what" as its subject.
Findings check_sentences(const SourceText& source);

// A text file that is no C++: a README, a script, a .proto.
struct Page {
  std::string path;
  std::string text;
};

// Names in comments and READMEs exist: files by the end of their path, `A::b`, and in comments a
// `word` between back-ticks, which code, a literal or a page that is no README must have.
Findings check_names(const std::vector<SourceText>& sources, const std::vector<Page>& pages,
                     const std::vector<std::string>& files);

}  // namespace rehearsal::tidy
