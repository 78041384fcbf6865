#include "core/checkpoint/kept_pieces.h"

#include <utility>

#include "core/base/checkpoints.h"
#include "core/base/result.h"
#include "core/base/trace.h"

namespace rehearsal {
namespace {

Checkpoints& place_of(const Caller& caller, const std::string& name) {
  (void)caller.strand()->running();  // A killed worker changes nothing any more.
  const auto fail = [&caller](ErrorKind kind, std::string text) {
    throw RpcError({.kind = kind, .text = std::move(text), .worker = caller.strand()->name()});
  };
  if (!is_checkpoint_name(name))
    fail(ErrorKind::bad_arguments, "'" + name +
                                       "' cannot be the name of a checkpoint: letters, digits, "
                                       "'-', '_' and '.' can, not first a '.', 100 at most");
  Checkpoints* const kept = caller.checkpoints();
  if (kept == nullptr)
    fail(ErrorKind::storage,
         "this worker has no place for checkpoints: start it with a folder for them");
  return *kept;
}

void tell(const Caller& caller, EventKind kind, const std::string& name,
          const std::optional<std::string>& bytes) {
  const uint64_t digest = bytes ? hash_bytes(bytes->data(), bytes->size()) : 0;
  caller.strand()->post([strand = caller.strand(), kind, name, digest] {
    strand->trace().on_event(
        {.kind = kind, .worker = strand->self(), .digest = digest, .text = name});
  });
}

}  // namespace

void save_piece(const Caller& caller, const std::string& name, const std::string& bytes) {
  place_of(caller, name).save(name, bytes).or_throw();
  tell(caller, EventKind::checkpoint_saved, name, bytes);
}

std::optional<std::string> load_piece(const Caller& caller, const std::string& name) {
  std::optional<std::string> found = place_of(caller, name).load(name).or_throw();
  tell(caller, EventKind::checkpoint_loaded, name, found);
  return found;
}

}  // namespace rehearsal
