#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace rehearsal {

// The overloads that are meant by a name: one of "namespace::name.overload", all of
// "namespace::name", that without a name first. Functions that only TorchScript has are no
// operators. Empty: there is none. A name costs a look-up and leaves nothing behind, whoever has
// made it up: overloads are those that the dispatcher has when this is first called. Of a library
// that is loaded later it finds names with their overloads, and those that have none.
[[nodiscard]] std::vector<c10::OperatorHandle> operators_named(const std::string& name);

// The same, of what the dispatcher has now: for names that the program says, not a peer.
[[nodiscard]] std::vector<c10::OperatorHandle> operators_now_named(const std::string& name);

[[nodiscard]] std::string full_name(const c10::OperatorHandle& overload);

}  // namespace rehearsal
