#include "real_net/worker/shortage.h"

#include <sys/eventfd.h>

#include <cerrno>
#include <new>
#include <system_error>
#include <vector>

#include "core/base/user_code.h"
#include "real_net/runtime/file_descriptor.h"
#include "real_net/tcp/socket.h"
#include "real_net/worker/meeting_store.h"

namespace rehearsal::real {
namespace {

// Its epoll and what wakes it, the socket where it listens, its client of the store and the
// question that it asks there first.
constexpr size_t kOfAWorker = 5;

// Its socket, what it sleeps in and is woken by, and the server's end of the worker's own client;
// beside these one for each other worker.
constexpr size_t kOfTheStore = 4;

constexpr size_t kOfALink = 2;

Error overloaded(std::string text) {
  return {.kind = ErrorKind::overloaded, .text = std::move(text)};
}

Error error_of_system(const std::system_error& thrown) {
  const int code = thrown.code().value();
  if (is_shortage(code)) return shortage_error(code);
  if (code == EAGAIN)
    return overloaded("no thread can be started: " + errno_text(code) +
                      " (raise that with ulimit -u, or pids.max of the control group)");
  return overloaded(thrown.what());
}

}  // namespace

Error error_of_failure(const std::string& worker) {
  try {
    throw;
  } catch (const RpcError& thrown) {
    return thrown.error();
  } catch (const std::bad_alloc&) {
    return overloaded(
        "no memory is left (raise that with ulimit -v, or memory.max of the control group)");
  } catch (const std::system_error& thrown) {
    return error_of_system(thrown);
  } catch (...) {
    return current_exception_as_error(worker, "");
  }
}

Status check_descriptors(const Placement& placement, size_t peers) {
  const bool serves = placement.rank == 0 && MeetingStore::served_by_worker(placement);
  const size_t needed = kOfAWorker + kOfALink * peers + (serves ? kOfTheStore + peers : 0);
  std::vector<FileDescriptor> tried;
  while (tried.size() < needed) {
    FileDescriptor one(eventfd(0, EFD_CLOEXEC));
    const int error = errno;
    if (one.valid()) {
      tried.push_back(std::move(one));
      continue;
    }
    if (!is_shortage(error)) break;
    Error shortage = shortage_error(error);
    shortage.text += ": this worker needs " + std::to_string(needed) +
                     " at the least beside those that are open, and can have " +
                     std::to_string(tried.size());
    return shortage;
  }
  return Unit{};
}

}  // namespace rehearsal::real
