#pragma once

#include <chrono>
#include <memory>

#include "core/base/ids.h"
#include "real_net/auth/credentials.h"
#include "real_net/worker/member_record.h"

namespace rehearsal::real {

// Whether the life of a worker that published this record still runs where it says: it is asked,
// and has until `deadline` to answer. False also if it hangs, is cut off, or another program has
// its address, or, if there are credentials, it does not prove itself.
[[nodiscard]] bool is_present(WorkerId worker, const MemberRecord& record,
                              const std::shared_ptr<Credentials>& credentials,
                              std::chrono::steady_clock::time_point deadline);

}  // namespace rehearsal::real
