#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "real_net/worker/placement.h"

namespace rehearsal::real {

// The carrier of the large tensors of process groups: the calls of their members, as all else, or
// gloo (real_net/gloo), which all workers of a group choose or none.
enum class Collectives : uint8_t { own, gloo };

[[nodiscard]] std::string_view name_of(Collectives collectives);

// The other choices of a worker that gloo does not go with.
struct BesideCollectives {
  bool is_recorded = false;  // a record cannot hold what gloo brings
  bool proves = false;       // by a secret or certificates, which gloo's connections do not
};

// `text` is "own" or "gloo"; an empty one comes from the environment, REHEARSAL_COLLECTIVES, else
// it is "own". The error (bad_arguments) is one line.
[[nodiscard]] Result<Collectives> choose_collectives(const std::string& text,
                                                     const Environment& environment,
                                                     const BesideCollectives& beside);

}  // namespace rehearsal::real
