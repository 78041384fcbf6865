#pragma once

#include <string>

#include "core/base/result.h"
#include "real_net/runtime/file_descriptor.h"
#include "real_net/tcp/address.h"

namespace rehearsal::real {

// This machine, as others reach it. Each of these looks a name up, which may take long.
//
// A machine often knows its own name as a loopback address, which nobody else can use. A name that
// stands for loopback here is taken for its own if it is what the machine is called, or if others
// may come (`for_others`); else it is a name of loopback, and stays there.

// Whether only this machine reaches whoever listens as `named`.
[[nodiscard]] bool stays_on_this_machine(const Address& named, bool for_others);

// The address of this machine that others reach it by who are where `remote` is. Of loopback: one
// of loopback; of a name that is its own: the first address of its other interfaces.
[[nodiscard]] std::string address_towards(const Address& remote, bool for_others);

// A socket that listens for those who know this machine as `named`: at that address, if it is one
// and this machine has it; else, as where a name has several, or an address is translated on the
// way, at all addresses of both families.
[[nodiscard]] Result<FileDescriptor> listen_as(const Address& named, bool for_others);

}  // namespace rehearsal::real
