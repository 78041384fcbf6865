#pragma once

#include <optional>
#include <string>

#include "real_net/auth/auth.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// The proof that a worker's options name; empty: as REHEARSAL_AUTH says. The error (bad_arguments)
// is one line; see parse_auth.
[[nodiscard]] Result<Auth> choose_auth(const std::string& text, const Environment& environment);

// Whether a worker that listens there, and says that it is reached at `advertise`, may do so with
// this proof: others than this machine reach nobody who has not chosen one by name, be it `none`.
// The error (bad_arguments) names the address and says how to.
[[nodiscard]] Status check_exposure(const Auth& auth, const Placement& placement,
                                    const Address& listen,
                                    const std::optional<Address>& advertise = {});

}  // namespace rehearsal::real
