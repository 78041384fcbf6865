#include "real_net/worker/proof.h"

namespace rehearsal::real {

Result<Auth> choose_auth(const std::string& text, const Environment& environment) {
  return parse_auth(text.empty() ? environment("REHEARSAL_AUTH").value_or("") : text, environment);
}

Status check_exposure(const Auth& auth, const Placement& placement, const Address& listen) {
  if (auth.kind != Auth::Kind::unsaid) return Unit{};
  const bool serves = placement.rank == 0 && placement.file.empty() && !placement.agent_serves;
  const Address& exposed = is_loopback(listen.host) && serves ? placement.master : listen;
  if (is_loopback(exposed.host)) return Unit{};
  return Error{.kind = ErrorKind::bad_arguments,
               .text = "others than this machine can reach this worker, at " + to_string(exposed) +
                       ": give the group a secret (REHEARSAL_AUTH or --auth secret:file=PATH, " +
                       "made by openssl rand -hex 32), or say --auth none if nobody else is in " +
                       "its network"};
}

}  // namespace rehearsal::real
