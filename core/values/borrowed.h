#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/device_lending.h"
#include "core/base/stream_set.h"
#include "core/base/unique_function.h"

namespace rehearsal {

// A loan that its borrower gives back.
struct Returning {
  LoanId loan = 0;
  std::shared_ptr<const StreamMarks> copied;  // not before these are reached; null: at once
  at::Tensor elements;                        // of the lender, which the copy reads
};

// The memory that a peer has lent for a tensor of a message: it is given back once, when devices
// here have copied it, or when nobody will any more.
class Borrowed {
 public:
  // Any thread.
  using GiveBack = UniqueFunction<void(Returning)>;

  Borrowed(LoanId loan, std::string ticket) : loan_(loan), ticket_(std::move(ticket)) {}
  ~Borrowed() {
    if (give_back_) give_back_({.loan = loan_, .copied = nullptr, .elements = {}});
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  // Before anybody else has it. Without, nothing is given back.
  void set_give_back(GiveBack give_back) { give_back_ = std::move(give_back); }

  [[nodiscard]] LoanId loan() const { return loan_; }
  [[nodiscard]] const std::string& ticket() const { return ticket_; }

  // The copy has been given to streams. Once.
  void copied(at::Tensor elements, std::shared_ptr<const StreamMarks> marks) {
    if (GiveBack give_back = std::exchange(give_back_, nullptr))
      give_back({.loan = loan_, .copied = std::move(marks), .elements = std::move(elements)});
  }

 private:
  const LoanId loan_;
  const std::string ticket_;
  GiveBack give_back_;
};

// Of each tensor of a message; null: it is not lent. None: no tensor is.
using AllBorrowed = std::vector<std::shared_ptr<Borrowed>>;

}  // namespace rehearsal
