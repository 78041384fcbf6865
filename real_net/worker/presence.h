#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "core/base/ids.h"
#include "real_net/auth/credentials.h"
#include "real_net/worker/member_record.h"

namespace rehearsal::real {

// How the life of a worker that published a record shows itself.
enum class Presence : uint8_t {
  here,    // it answers where its record says
  gone,    // nobody listens there, or another life of a worker does: it is dead
  silent,  // nothing can be told: it hangs, is cut off, or another program has its address
};

// Asks it; it has until `deadline` to answer. If there are credentials, whoever does not prove
// itself is silent.
[[nodiscard]] Presence presence_of(WorkerId worker, const MemberRecord& record,
                                   const std::shared_ptr<Credentials>& credentials,
                                   std::chrono::steady_clock::time_point deadline);

}  // namespace rehearsal::real
