#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <vector>

namespace rehearsal {

// The overloads that are meant by a name: one of "namespace::name.overload", all of
// "namespace::name", that without a name first. Functions that only TorchScript has are no
// operators. Empty: there is none.
[[nodiscard]] std::vector<c10::OperatorHandle> operators_named(const std::string& name);

[[nodiscard]] std::string full_name(const c10::OperatorHandle& overload);

}  // namespace rehearsal
