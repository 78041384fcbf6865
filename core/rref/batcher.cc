#include "core/api/batcher.h"

namespace rehearsal {

void BatchOptions::check() const {
  if (size == 0) throw std::invalid_argument("a batch of no items: give it a size of at least 1");
  if (delay && delay->count() < 0) throw std::invalid_argument("a batch's delay is negative");
}

namespace detail {

void keep_until_read(const Caller& caller, const std::vector<Streams>& streams) {
  for (const Streams& owner : streams)
    if (owner != nullptr) owner->after(*StreamSet::current(caller.strand()->devices()));
}

Error not_collected(const Caller& caller, std::string_view why) {
  return {.kind = ErrorKind::cancelled,
          .text = std::string(why),
          .worker = caller.strand()->name(),
          .function = "batch"};
}

}  // namespace detail
}  // namespace rehearsal
