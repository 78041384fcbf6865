#include "placed.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <rehearsal/worker.h>

#include <stdexcept>
#include <string>

namespace placed {
namespace {

using c10::impl::VirtualGuardImpl;
using rehearsal::Program;
using rehearsal::Worker;

constexpr int64_t kRows = 8;
constexpr int kSteps = 4;

c10::Stream current_stream(c10::Device device) {
  return VirtualGuardImpl(device.type()).getStream(device);
}

void trainer(Worker& worker, Rows rows) {
  const c10::Device mine = worker.device(0);
  const auto table = worker.remote<Table>("server", kRows);
  const at::Tensor all = at::arange(kRows).to(mine);
  for (int step = 1; step <= kSteps; ++step) {
    table.rpc_sync(&Table::refresh, at::full({kRows}, double(step)).to(mine));
    const at::Tensor read = table.rpc_sync(rows, all);
    if (read.device() != mine || read.sum().item<double>() != double(step * kRows))
      throw std::logic_error("step " + std::to_string(step) + " reads other values");
  }
}

}  // namespace

Table::Table(rehearsal::CallContext& call, int64_t rows)
    : values_(at::zeros({rows}).to(call.device(1))),
      copies_(VirtualGuardImpl(values_.device().type()).getStreamFromGlobalPool(values_.device())),
      refreshed_(values_.device().type()) {
  values_.record_stream(copies_);
}

void Table::refresh(const at::Tensor& values) {
  c10::Event arrived(values.device().type());
  arrived.record(current_stream(values.device()));
  arrived.block(copies_);
  const c10::StreamGuard on_copies(copies_);
  values.record_stream(copies_);
  values_.copy_(values, /*non_blocking=*/true);
  refreshed_.record(copies_);
}

at::Tensor Table::rows_at_once(const at::Tensor& indices) {
  return values_.index_select(0, indices);
}

at::Tensor Table::rows(const at::Tensor& indices) {
  refreshed_.block(current_stream(values_.device()));
  return values_.index_select(0, indices);
}

Program program(Rows rows) {
  rehearsal::FunctionRegistry registry;
  registry.type<Table>("Table")
      .constructor<rehearsal::CallContext&, int64_t>()
      .method("refresh", &Table::refresh)
      .method("rows_at_once", &Table::rows_at_once)
      .method("rows", &Table::rows);
  Program program(std::move(registry));
  program.worker("trainer", [rows](Worker& worker) { trainer(worker, rows); })
      .device_map("server", {{0, 1}})
      .worker("server");
  return program;
}

}  // namespace placed
