// The part of a node that hears greetings: which ones it refuses, and what it learns from the
// others.
#include <string>

#include "core/base/ids.h"
#include "core/node/hello.h"
#include "core/node/node_parts.h"

namespace rehearsal {

Status NodeParts::check_hello(const Hello& hello) {
  Result<Greeting> theirs = greeting_from_text(hello.greeting);
  if (!theirs.ok()) return theirs.error();
  const std::string& name = options.names[hello.worker.value];
  if (worker_of(hello.incarnation) != hello.worker)
    return Error{.kind = ErrorKind::protocol,
                 .text = "worker '" + name + "' says that it is a life of another worker",
                 .worker = name};
  if (!same_arithmetic(greeting, theirs.value()))
    strand->mark("a peer computes with another LibTorch, instruction set or thread count");
  if (Status fits = check_greeting(greeting, theirs.value(), name); !fits.ok()) return fits;
  if (const auto mistake = devices.mistake_with(hello.worker, theirs.value().devices))
    return Error{.kind = ErrorKind::bad_arguments, .text = *mistake, .worker = name};
  uint32_t& least_life = least_lives_[hello.worker.value];
  if (theirs.value().life < least_life)
    return Error{.kind = ErrorKind::fenced,
                 .text = "worker '" + name + "' is known in a life of the same number or a later " +
                         "one than " + std::to_string(theirs.value().life),
                 .worker = name};
  if (MaybeError late = group->refuses(name)) return *late;
  least_life = theirs.value().life + 1;
  peer_timeouts_[hello.worker.value] = theirs.value().peer_timeout;
  devices.learn(hello.worker, theirs.value().devices);
  if (options.lending) options.lending->meet(hello.worker, theirs.value().devices.lending);
  return Unit{};
}

void NodeParts::on_peer_joined(const Hello& hello) {
  const uint32_t life = least_lives_[hello.worker.value] - 1;
  sessions.set_peer_timeout(hello.worker, peer_timeouts_[hello.worker.value]);
  gatherings.on_peer_joined(hello.worker, life);
  group->on_peer_joined(hello.worker, life);
}

void NodeParts::on_hello_refused(WorkerId peer, const Error& why) {
  group->on_hello_refused(peer, why);
}

}  // namespace rehearsal
