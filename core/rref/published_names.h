#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "core/api/published.h"
#include "core/base/future.h"
#include "core/base/result.h"
#include "core/session/session_options.h"

namespace rehearsal {

class RRefContext;

// The references that this worker has published, and the look-ups that wait for one to be. A name
// holds its reference as a handle of the program's does. On the strand.
class PublishedNames {
 public:
  PublishedNames(const SessionOptions& options, NodeStrand& strand)
      : options_(options), strand_(strand) {}

  // Error: bad_arguments if the name is taken; that of publish_no_more.
  [[nodiscard]] Status publish(const std::string& name, NamedReference reference);
  // Error: bad_arguments if nothing has the name, while names are published.
  [[nodiscard]] Status unpublish(const std::string& name);

  // Completes `found` with the name's reference, now or when it is published. `asker`: the
  // execution of the call that asks; when it is given up nobody waits any more.
  void look_up(const std::string& name, const std::string& type, Execution& asker,
               const std::shared_ptr<FutureState<NamedReference>>& found);

  // Nothing is published any more: who waits gets `why`, as does who comes later, to publish or for
  // what is not there.
  void publish_no_more(const Error& why);

  // Takes that back.
  void publish_again() { closed_.reset(); }

  // Releases what the names hold, at a graceful shutdown; they hold nothing from then on.
  void release(RRefContext& references);

  // Drops everything: the node ends.
  void clear();

  [[nodiscard]] uint64_t size() const { return names_.size(); }
  [[nodiscard]] uint64_t waiting() const;
  // A line for each name and for each that is waited for.
  [[nodiscard]] std::string debug_info() const;

 private:
  struct Waiting {
    std::string type;
    std::shared_ptr<FutureState<NamedReference>> found;
  };
  void answer(const std::string& name, const Waiting& waiting) const;
  void forget(const std::string& name, uint64_t number);
  [[nodiscard]] Error error(ErrorKind kind, std::string text) const;

  const SessionOptions& options_;
  NodeStrand& strand_;
  std::map<std::string, NamedReference> names_;
  std::map<std::string, std::map<uint64_t, Waiting>> waiting_;  // by name, as they came
  uint64_t looked_up_ = 0;                                      // so far
  MaybeError closed_;
  std::shared_ptr<const bool> lives_ = std::make_shared<const bool>(true);
};

}  // namespace rehearsal
