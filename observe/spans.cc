#include "observe/spans.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace rehearsal::observe {

std::string span_name(const Span& span, const std::vector<std::string>& names) {
  if (span.served) return span.function;
  const auto name = [&names](uint32_t rank) {
    return rank < names.size() ? names[rank] : "worker " + std::to_string(rank);
  };
  return call_text(span.form, span.function, name(span.worker), name(span.peer));
}

void Spans::on_event(const Event& event) {
  const bool served = event.kind == EventKind::call_executed;
  switch (event.kind) {
    case EventKind::api_call:
    case EventKind::call_executed: {
      Span span{.call = event.id,
                .served = served,
                .form = served ? CallForm{} : static_cast<CallForm>(event.digest),
                .worker = event.worker.value,
                .peer = event.peer.value,
                .function = std::string(event.text),
                .begin = event.when,
                .end = event.when,
                .error = {}};
      if (!served && span.form == CallForm::remote) return keep(std::move(span));
      (served ? served_ : made_).insert_or_assign(event.id, std::move(span));
      return;
    }
    case EventKind::call_completed:
      // A backward pass is carried out by its caller, and answered by nobody.
      if (event.peer == event.worker) end(served_, event);
      return end(made_, event);
    case EventKind::call_served:
      return end(served_, event);
    default:
      return;
  }
}

void Spans::end(Open& open, const Event& event) {
  const auto found = open.find(event.id);
  if (found == open.end()) return;
  Span span = std::move(found->second);
  open.erase(found);
  span.end = event.when;
  if (event.number > 0) span.error = static_cast<ErrorKind>(event.number - 1);
  keep(std::move(span));
}

void Spans::keep(Span&& span) {
  ended_.push_back(std::move(span));
  if (ended_.size() <= limit_) return;
  ended_.pop_front();
  ++forgotten_;
}

bool is_possible(Instant when) {
  constexpr int64_t kMost = int64_t{1} << 60;
  const int64_t nanoseconds = when.time_since_epoch().count();
  return nanoseconds >= -kMost && nanoseconds <= kMost;
}

SpanFile file_of(const Spans& spans, std::vector<std::string> names) {
  return {std::move(names), {spans.ended().begin(), spans.ended().end()}, spans.forgotten()};
}

// ---- merging ----------------------------------------------------------------

namespace {

using ByCall = std::map<std::pair<CausalId, bool>, const Span*>;

ByCall by_call(const std::vector<Span>& spans) {
  ByCall found;
  for (const Span& span : spans)
    if (span.served || span.form != CallForm::remote) found[{span.call, span.served}] = &span;
  return found;
}

// By how much the spans of `later` must be shifted to fit to those of `known`: each pair of a call
// bounds it from below and above.
Duration shift_of(const std::vector<Span>& known, const std::vector<Span>& later) {
  const ByCall calls = by_call(known);
  std::optional<std::pair<Duration, Duration>> bounds;
  for (const Span& span : later) {
    if (!span.served && span.form == CallForm::remote) continue;
    const auto found = calls.find({span.call, !span.served});
    if (found == calls.end()) continue;
    const Span& other = *found->second;
    // The served one begins after the made one, and ends before it.
    Duration low = other.begin - span.begin;
    Duration high = other.end - span.end;
    if (!span.served) std::swap(low, high);
    bounds = bounds ? std::pair(std::max(bounds->first, low), std::min(bounds->second, high))
                    : std::pair(low, high);
  }
  if (!bounds || (bounds->first.count() <= 0 && bounds->second.count() >= 0)) return Duration(0);
  return bounds->first + (bounds->second - bounds->first) / 2;
}

}  // namespace

Result<SpanFile> merge(const std::vector<SpanFile>& files) {
  SpanFile all;
  for (const SpanFile& file : files) {
    if (all.names.empty()) all.names = file.names;
    if (file.names != all.names)
      return Error{.kind = ErrorKind::bad_arguments,
                   .text = "the files are of different groups: their workers have other names"};
    const Duration shift = shift_of(all.spans, file.spans);
    for (Span span : file.spans) {
      span.begin += shift;
      span.end += shift;
      if (!is_possible(span.begin) || !is_possible(span.end))
        return Error{.kind = ErrorKind::bad_arguments,
                     .text = "the files do not fit together: no clock can say their times"};
      all.spans.push_back(std::move(span));
    }
    all.forgotten += file.forgotten;
  }
  return all;
}

}  // namespace rehearsal::observe
