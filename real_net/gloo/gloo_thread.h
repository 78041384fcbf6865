#pragma once

#include <memory>

#include "real_net/gloo/gloo_carriers.h"

namespace rehearsal::real {

// Carries out the orders of one group, one after the other, until they are given up or gloo fails.
// On a thread of its own, which is left to itself. REQUIRES: has_gloo()
void start_gloo_thread(GlooOptions options, const GroupCarriers::Group& group,
                       std::shared_ptr<Orders> orders);

}  // namespace rehearsal::real
