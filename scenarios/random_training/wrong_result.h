#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace rehearsal::random_training {

// Something that is not as it is in one process.
class WrongResult : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

inline void expect(bool holds, const std::string& what) {
  if (!holds) throw WrongResult(what);
}

// That all bits are equal.
inline void expect_same(const std::vector<at::Tensor>& found,
                        const std::vector<at::Tensor>& expected, const std::string& what) {
  expect(found.size() == expected.size(), what + ": another number of tensors than in one process");
  for (size_t i = 0; i < found.size(); ++i)
    expect(found[i].equal(expected[i]), what + ": other bits than in one process");
}

}  // namespace rehearsal::random_training
