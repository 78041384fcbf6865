// Goal: each call leaves one span at its caller and one at its callee, named after both, whatever
// it is recorded in. Method: the reference's profiler tests, on the spans of all workers; ranges of
// LibTorch's own profiler have their tests in tests/core/calls.
#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "observe/spans.h"
#include "tests/reference/row.h"

namespace rehearsal::reference::profiler_test {
namespace {

using observe::Span;
using observe::Spans;

at::Tensor add(const at::Tensor& a, const at::Tensor& b) { return a + b; }

FunctionRegistry functions() {
  FunctionRegistry registry;
  registry.function("add", &add);
  registry.script("lib", "def add(x, y):\n    return x + y\n");
  return registry;
}

using Ended = std::vector<Span>;

Ended ended_of(const Spans& spans) { return {spans.ended().begin(), spans.ended().end()}; }

// Runs the program with many seeds and over loopback, and looks at the spans of each run.
void with_spans(const Program& program, const std::function<void(const Ended&)>& look) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Spans spans;
    sim::ClusterOptions options;
    options.traces = {&spans};
    sim::Cluster cluster(Seed{seed}, program, options);
    cluster.run();
    look(ended_of(spans));
  }
  std::vector<std::unique_ptr<Spans>> of_workers;
  real::GroupOptions options;
  for (size_t rank = 0; rank < program.members().size(); ++rank) {
    of_workers.push_back(std::make_unique<Spans>());
    options.traces.push_back(of_workers.back().get());
  }
  Ended all;
  {
    real::LoopbackGroup group(program, options);
    for (const Status& ended : group.run()) EXPECT_TRUE(ended.ok()) << to_string(ended.error());
  }
  for (const auto& spans : of_workers) {
    const Ended some = ended_of(*spans);
    all.insert(all.end(), some.begin(), some.end());
  }
  look(all);
}

// The one span of that name at that worker.
const Span* find(const Ended& spans, const std::string& name, uint32_t worker) {
  const std::vector<std::string> names = {"worker0", "worker1"};
  const Span* found = nullptr;
  for (const Span& span : spans) {
    if (span_name(span, names) != name || span.worker != worker) continue;
    EXPECT_EQ(found, nullptr) << "two spans " << name;
    found = &span;
  }
  EXPECT_NE(found, nullptr) << "no span " << name;
  return found;
}

// A call of worker0 to worker1, at both.
void expect_call(const Ended& spans, const std::string& form, const std::string& function) {
  const Span* const made = find(spans, form + "#" + function + "(worker0 -> worker1)", 0);
  ASSERT_NE(made, nullptr);
  EXPECT_LE(made->begin, made->end);
  EXPECT_FALSE(made->error.has_value());
  const auto served = std::find_if(spans.begin(), spans.end(), [&](const Span& span) {
    return span.served && span.call == made->call;
  });
  ASSERT_NE(served, spans.end()) << form << "#" << function;
  EXPECT_EQ(served->function, function);
  EXPECT_EQ(served->worker, 1u);
  EXPECT_LE(served->begin, served->end);
}

// Rows: rpc_test::RpcTest.{test_build_rpc_profiling_key, test_profiler_with_sync_rpc_udf,
// Rows: test_profiler_with_sync_rpc_udf_single_threaded, test_profiler_with_sync_rpc_builtin,
// Rows: test_profiler_with_sync_rpc_builtin_single_threaded, test_profiler_with_async_rpc_udf,
// Rows: test_profiler_with_async_rpc_udf_single_threaded, test_profiler_with_async_rpc_builtin,
// Rows: test_profiler_with_async_rpc_builtin_single_threaded, test_profiler_with_remote_udf,
// Rows: test_profiler_with_remote_udf_single_threaded, test_profiler_with_remote_builtin,
// Rows: test_profiler_with_remote_builtin_single_threaded, test_profiler_with_script_async_rpc,
// Rows: test_profiler_with_script_async_rpc_single_threaded, test_profiler_with_script_sync_rpc,
// Rows: test_profiler_with_script_sync_rpc_single_threaded, test_profiler_with_script_remote_rpc,
// Rows: test_profiler_with_script_remote_rpc_single_threaded}
TEST(ReferenceProfiler, EachCallOfEachKindIsOneSpanAtBothEnds) {
  const Program program = one_caller(functions(), [](Worker& worker) {
    const at::Tensor x = at::ones({2});
    const std::string to = "worker1";
    (void)worker.rpc_sync(to, &add, x, x);
    (void)worker.rpc_sync<at::Tensor>(to, "aten::mul.Tensor", x, x);
    (void)worker.rpc_sync<at::Tensor>(to, "script::lib.add", x, x);
  });
  with_spans(program, [](const Ended& spans) {
    for (const char* function : {"add", "aten::mul.Tensor", "script::lib.add"})
      expect_call(spans, "rpc_sync", function);
  });
  const Program others = one_caller(functions(), [](Worker& worker) {
    const at::Tensor x = at::ones({2});
    const std::string to = "worker1";
    worker.rpc_async(to, &add, x, x).wait();
    worker.rpc_async<at::Tensor>(to, "aten::mul.Tensor", x, x).wait();
    worker.rpc_async<at::Tensor>(to, "script::lib.add", x, x).wait();
    worker.remote(to, &add, x, x).created().wait();
    worker.remote_by_name<c10::IValue>(to, "aten::sub.Tensor", x, x).created().wait();
  });
  with_spans(others, [](const Ended& spans) {
    for (const char* function : {"add", "aten::mul.Tensor", "script::lib.add"})
      expect_call(spans, "rpc_async", function);
    for (const char* function : {"add", "aten::sub.Tensor"})
      expect_call(spans, "rpc_remote", function);
  });
}

at::Tensor six_operations(CallContext& context, const std::string& to, const at::Tensor& x) {
  at::Tensor y = x;
  for (int i = 0; i < 6; ++i) y = context.rpc_sync(to, &add, y, x);
  return y;
}

// Rows: rpc_test::RpcTest.{test_profiler_remote_events_profiled,
// Rows: test_profiler_remote_events_profiled_single_threaded, test_profiler_rpc_key_names,
// Rows: test_profiler_rpc_record_shapes, test_profiler_rpc_memory, test_profiler_export_trace,
// Rows: test_rpc_profiling_remote_record_function, test_server_process_global_profiler}
TEST(ReferenceProfiler, WhatACallCallsIsToldApartAndTheFileIsReadAgain) {
  FunctionRegistry registry = functions();
  registry.function("six_operations", &six_operations);
  const Program program = everywhere(
      std::move(registry),
      [](Worker& worker) {
        for (int i = 0; i < 2; ++i)
          (void)worker.rpc_sync(after(worker), &six_operations, worker.name(), at::ones({2}));
      },
      2);
  const std::vector<std::string> names = program.names();
  with_spans(program, [&](const Ended& spans) {
    std::map<std::string, int> counts;
    for (const Span& span : spans)
      if (!span.served) ++counts[span_name(span, names)];
    const std::map<std::string, int> expected = {
        {"rpc_sync#add(worker0 -> worker1)", 12},
        {"rpc_sync#add(worker1 -> worker0)", 12},
        {"rpc_sync#six_operations(worker0 -> worker1)", 2},
        {"rpc_sync#six_operations(worker1 -> worker0)", 2}};
    EXPECT_EQ(counts, expected);
    const observe::SpanFile file{.names = names, .spans = spans};
    const Result<observe::SpanFile> again = observe::read_spans(observe::perfetto_text(file));
    ASSERT_TRUE(again.ok()) << to_string(again.error());
    EXPECT_EQ(again.value().spans.size(), spans.size());
  });
}

// Rows: rpc_test::RpcTest.{test_profiler_with_autograd_context,
// Rows: test_profiler_with_autograd_context_single_threaded}
// Rows: dist_autograd_test::DistAutogradTest.test_dist_autograd_profiling
TEST(ReferenceProfiler, ACallInAnAutogradContextIsASpanLikeAnyOther) {
  const Program program = one_caller(functions(), [](Worker& worker) {
    const AutogradContext context = worker.autograd_context();
    const at::Tensor x = at::ones({1}).requires_grad_();
    const at::Tensor product =
        context.rpc_async<at::Tensor>("worker1", "aten::mul.Tensor", x, x).wait();
    context.backward({product});
  });
  with_spans(program,
             [](const Ended& spans) { expect_call(spans, "rpc_async", "aten::mul.Tensor"); });
}

}  // namespace
}  // namespace rehearsal::reference::profiler_test
