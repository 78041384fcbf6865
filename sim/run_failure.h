#pragma once

#include <exception>
#include <string>

namespace rehearsal::sim {

// How a run failed: which promise was broken, on what, and how.
struct RunFailure {
  std::string oracle;
  std::string object;  // a worker, a call, a reference, …; empty: the run
  std::string message;
  std::exception_ptr thrown = nullptr;  // that ended the scene of a test, if one did
};

// One line: oracle, object, message.
[[nodiscard]] std::string to_text(const RunFailure& failure);

}  // namespace rehearsal::sim
