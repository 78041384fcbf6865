#include "core/rref/published_names.h"

#include <utility>

#include "core/base/short_text.h"
#include "core/rref/rref_context.h"

namespace rehearsal {

Error PublishedNames::error(ErrorKind kind, std::string text) const {
  return {.kind = kind, .text = std::move(text), .worker = strand_.name()};
}

Status PublishedNames::publish(const std::string& name, NamedReference reference) {
  if (closed_) {
    Error why = *closed_;
    why.text += ", and publishes nothing any more";
    return why;
  }
  const auto [place, fresh] = names_.emplace(name, std::move(reference));
  if (!fresh)
    return error(ErrorKind::bad_arguments, "'" + short_name(name) +
                                               "' is published here already, as a " +
                                               place->second.type + ": unpublish it first");
  const auto waiting = waiting_.find(name);
  if (waiting == waiting_.end() || options_.mutants.on(Mutant::publication_wakes_nobody))
    return Unit{};
  const std::map<uint64_t, Waiting> all = std::move(waiting_.extract(waiting).mapped());
  for (const auto& [number, one] : all) answer(name, one);
  return Unit{};
}

Status PublishedNames::unpublish(const std::string& name) {
  if (names_.erase(name) > 0 || closed_) return Unit{};
  return error(ErrorKind::bad_arguments, "nothing is published here as '" + short_name(name) + "'");
}

void PublishedNames::answer(const std::string& name, const Waiting& waiting) const {
  const NamedReference& published = names_.at(name);
  if (published.type == waiting.type) return waiting.found->complete(published);
  waiting.found->complete(
      error(ErrorKind::bad_arguments, "'" + short_name(name) + "' of worker '" + strand_.name() +
                                          "' is a " + published.type + ", and was looked up as a " +
                                          waiting.type));
}

void PublishedNames::look_up(const std::string& name, const std::string& type, Execution& asker,
                             const std::shared_ptr<FutureState<NamedReference>>& found) {
  Waiting waiting{.type = type, .found = found};
  if (names_.contains(name)) return answer(name, waiting);
  if (closed_) {
    Error why = *closed_;
    why.text += ", and publishes nothing as '" + short_name(name) + "'";
    return found->complete(std::move(why));
  }
  if (asker.given_up) return;
  const uint64_t number = looked_up_++;
  asker.when_given_up.push_back([this, lives = std::weak_ptr(lives_), name, number] {
    if (!lives.expired()) forget(name, number);
  });
  waiting_[name].emplace(number, std::move(waiting));
}

void PublishedNames::forget(const std::string& name, uint64_t number) {
  const auto waiting = waiting_.find(name);
  if (waiting == waiting_.end()) return;
  const auto one = waiting->second.extract(number);
  if (one.empty()) return;
  const std::shared_ptr<FutureState<NamedReference>> found = one.mapped().found;
  if (waiting->second.empty()) waiting_.erase(waiting);
  found->complete(
      error(ErrorKind::cancelled, "whoever looked '" + short_name(name) + "' up has given up"));
}

void PublishedNames::publish_no_more(const Error& why) {
  closed_ = why;
  const auto waiting = std::exchange(waiting_, {});
  for (const auto& [name, all] : waiting)
    for (const auto& [number, one] : all) {
      Error error = why;
      error.text += ", and publishes nothing as '" + short_name(name) + "'";
      one.found->complete(std::move(error));
    }
}

// The handles die later, and release nothing then: the last one of a value is counted off here.
void PublishedNames::release(RRefContext& references) {
  for (const auto& [name, published] : names_)
    references.release(published.handle->id(), published.handle->fork());
  strand_.release_later(std::make_shared<decltype(names_)>(std::exchange(names_, {})));
}

void PublishedNames::clear() {
  strand_.release_later(std::make_shared<decltype(names_)>(std::exchange(names_, {})));
  strand_.release_later(std::make_shared<decltype(waiting_)>(std::exchange(waiting_, {})));
}

uint64_t PublishedNames::waiting() const {
  uint64_t count = 0;
  for (const auto& [name, all] : waiting_) count += all.size();
  return count;
}

std::string PublishedNames::debug_info() const {
  std::string text;
  for (const auto& [name, published] : names_)
    text += "published as '" + short_name(name) + "': a " + published.type + ", " +
            to_string(published.handle->id().causal) + "\n";
  for (const auto& [name, all] : waiting_)
    text += std::to_string(all.size()) + " wait for '" + short_name(name) + "' to be published\n";
  return text;
}

}  // namespace rehearsal
