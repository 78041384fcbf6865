#include "core/api/stream.h"

#include "core/calls/incoming_stream.h"

namespace rehearsal {
namespace {

Draft&& with_stream(Draft& draft, uint64_t credit, const std::shared_ptr<IncomingStream>& stream) {
  draft.call.credit = credit;
  draft.stream = stream;
  return std::move(draft);
}

std::shared_ptr<IncomingStream> make_stream(uint64_t credit, const Draft& draft) {
  if (credit == 0)
    throw RpcError({.kind = ErrorKind::bad_arguments,
                    .text = "a stream needs credit for one value at least",
                    .function = draft.function});
  return std::make_shared<IncomingStream>(credit);
}

}  // namespace

StreamReader::StreamReader(std::shared_ptr<const Caller> caller, Draft&& draft, uint64_t credit)
    : caller_(std::move(caller)), id_(draft.call.id), stream_(make_stream(credit, draft)) {
  caller_->start(with_stream(draft, credit, stream_), [strand = caller_->strand(),
                                                       stream = stream_](Result<Answer>&& outcome) {
    Status ended = Unit{};
    if (!outcome.ok()) ended = std::move(outcome.error());
    strand->release_later(std::make_shared<std::vector<Answer>>(stream->finish(std::move(ended))));
  });
}

StreamReader::~StreamReader() {
  caller_->strand()->post(
      Tagged(CausalIdHash()(id_), [caller = caller_, id = id_, stream = stream_]() mutable {
        caller->calls().cancel(id);
        caller->strand()->release_later(std::move(stream));
      }));
}

void StreamReader::cancel() {
  caller_->strand()->post([caller = caller_, id = id_] { caller->calls().cancel(id); });
}

NextValue StreamReader::next() {
  std::optional<NextValue> next;
  const Status waited =
      caller_->strand()->wait("the next value of a stream", id_, [&](WaitHandle wait) {
        caller_->calls().take(id_, *stream_, [&next, wait](NextValue&& given) {
          if (!wait.lasts()) return;
          next.emplace(std::move(given));
          wait.end();
        });
      });
  if (!waited.ok()) return waited.error();
  return std::move(*next);
}

void StreamReader::next(ValueTaker taker) {
  caller_->strand()->post(
      [caller = caller_, id = id_, stream = stream_, taker = std::move(taker)]() mutable {
        caller->calls().take(id, *stream, std::move(taker));
      });
}

}  // namespace rehearsal
