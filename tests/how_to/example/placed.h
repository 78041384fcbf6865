// Two workers with devices: a table that lives on one of the server's, and a trainer that reads it
// from its own.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <rehearsal/call_context.h>
#include <rehearsal/program.h>

namespace placed {

class Table {
 public:
  // On device 1 of the worker that holds it.
  Table(rehearsal::CallContext& call, int64_t rows);

  // New values, copied in a stream of its own.
  void refresh(const at::Tensor& values);

  // Some of the values; the second one waits for the last refresh.
  at::Tensor rows_at_once(const at::Tensor& indices);
  at::Tensor rows(const at::Tensor& indices);

 private:
  at::Tensor values_;
  c10::Stream copies_;
  c10::Event refreshed_;
};

using Rows = at::Tensor (Table::*)(const at::Tensor& indices);

// A "trainer" that refreshes the table and reads it, and a "server" that has it. Each needs two
// devices.
rehearsal::Program program(Rows rows);

}  // namespace placed
