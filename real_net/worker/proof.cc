#include "real_net/worker/proof.h"

#include <chrono>
#include <functional>

#include "real_net/tcp/host_addresses.h"
#include "real_net/tcp/own_addresses.h"
#include "real_net/worker/bounded.h"

namespace rehearsal::real {
namespace {

// A name that takes longer to look up is that of another machine.
constexpr auto kLookUpLimit = std::chrono::seconds(10);

bool is_hidden(const Address& named) {
  if (is_loopback(named.host)) return true;
  const std::function<bool()> work = [named] {
    return stays_on_this_machine(named, /*for_others=*/false);
  };
  return within(std::chrono::steady_clock::now() + kLookUpLimit, work).value_or(false);
}

}  // namespace

Result<Auth> choose_auth(const std::string& text, const Environment& environment) {
  return parse_auth(text.empty() ? environment("REHEARSAL_AUTH").value_or("") : text, environment);
}

Status check_exposure(const Auth& auth, const Placement& placement, const Address& listen) {
  if (auth.kind != Auth::Kind::unsaid) return Unit{};
  const bool serves = placement.rank == 0 && placement.file.empty() && !placement.agent_serves;
  const bool hides = is_hidden(listen);
  if (hides && (!serves || is_hidden(placement.master))) return Unit{};
  const Address& exposed = hides ? placement.master : listen;
  return Error{.kind = ErrorKind::bad_arguments,
               .text = "others than this machine can reach this worker, at " + to_string(exposed) +
                       ": give the group a secret (REHEARSAL_AUTH or --auth secret:file=PATH, " +
                       "made by openssl rand -hex 32), or say --auth none if nobody else is in " +
                       "its network"};
}

}  // namespace rehearsal::real
