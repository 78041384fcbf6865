#include "core/api/batcher.h"

namespace rehearsal {

void BatchOptions::check() const {
  if (size == 0) throw std::invalid_argument("a batch of no items: give it a size of at least 1");
  if (delay && delay->count() < 0) throw std::invalid_argument("a batch's delay is negative");
}

namespace detail {

void join_items(const Caller& caller,
                const std::vector<std::shared_ptr<const StreamMarks>>& marks) {
  if (!caller.strand()->mutants().on(Mutant::batch_ahead_of_its_items)) join_all(marks);
}

void keep_until_read(const Caller& caller, const std::vector<Streams>& streams) {
  if (caller.strand()->mutants().on(Mutant::batch_lets_its_items_go)) return;
  for (const Streams& owner : streams)
    owner->after(*StreamSet::current(caller.strand()->devices()));
}

Error not_collected(const Caller& caller, std::string_view why) {
  return {.kind = ErrorKind::cancelled,
          .text = std::string(why),
          .worker = caller.strand()->name(),
          .function = "batch"};
}

}  // namespace detail
}  // namespace rehearsal
