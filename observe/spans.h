#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/base/result.h"
#include "core/base/trace.h"

namespace rehearsal::observe {

// One call as one of its two workers saw it.
struct Span {
  CausalId call;        // the same at both
  bool served = false;  // seen by the callee: from the start of the function to the answer
  CallForm form{};      // seen by the caller
  uint32_t worker = 0;  // who saw it
  uint32_t peer = 0;    // the other one
  std::string function;
  Instant begin{};
  Instant end{};  // of a `remote` seen by the caller: as its begin
  std::optional<ErrorKind> error;
  bool operator==(const Span&) const = default;
};

// The name of a span: `rpc_sync#add(trainer -> ps)`, also rpc_async and rpc_remote, at the caller;
// the function's name at the callee.
[[nodiscard]] std::string span_name(const Span& span, const std::vector<std::string>& names);

// Makes spans of the calls of the workers that it hears, one of them or all. A span is kept once it
// has ended; of more than `limit` the oldest are forgotten. A fetch (`to_here`) runs no function,
// and has a span at its caller only. On the strand, as every Trace.
class Spans final : public Trace {
 public:
  static constexpr size_t kLimit = 100'000;

  explicit Spans(size_t limit = kLimit) : limit_(limit) {}

  void on_event(const Event& event) override;
  [[nodiscard]] bool hears_notes() const override { return false; }

  // In the order in which they ended.
  [[nodiscard]] const std::deque<Span>& ended() const { return ended_; }
  [[nodiscard]] uint64_t forgotten() const { return forgotten_; }

 private:
  using Open = std::unordered_map<CausalId, Span, CausalIdHash>;  // look-up only

  void end(Open& open, const Event& event);
  void keep(Span&& span);

  const size_t limit_;
  Open made_, served_;
  std::deque<Span> ended_;
  uint64_t forgotten_ = 0;
};

// 36 years before or after a clock's zero at most.
[[nodiscard]] bool is_possible(Instant when);

// The contents of a file of spans.
struct SpanFile {
  std::vector<std::string> names;  // of all workers, in rank order
  std::vector<Span> spans;
  uint64_t forgotten = 0;
  bool operator==(const SpanFile&) const = default;
};

// The spans seen so far, as a file.
[[nodiscard]] SpanFile file_of(const Spans& spans, std::vector<std::string> names);

// The spans in the JSON format that Perfetto (ui.perfetto.dev) and chrome://tracing open. A worker
// is a process. A call is a line of its own at its caller, with the part of the callee nested in
// it if the file has both; and a slice at its callee, where slices that overlap have threads of
// their own. The same spans give the same text.
[[nodiscard]] std::string perfetto_text(const SpanFile& file);

// Reads back what perfetto_text has written; the error says what is wrong with the text.
[[nodiscard]] Result<SpanFile> read_spans(const std::string& text);

// The spans of several workers in one. The times of the first file hold. Those of a further one are
// shifted, all by the same, if else the part of a callee would lie outside its call: then the
// clocks of their machines have different zeros. An error if the files are of different groups, or
// if a span would then lie at a time that is not possible.
[[nodiscard]] Result<SpanFile> merge(const std::vector<SpanFile>& files);

}  // namespace rehearsal::observe
