#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/api/caller.h"
#include "core/api/gather_share.h"

// The parts of an all-gather: values as shares, and the call that brings them together. Users call
// Worker::all_gather and Worker::barrier.
namespace rehearsal {

// The function that every program has: the share of a member, at the first member.
void register_gatherings(FunctionRegistry& registry);

// The shares of all members and their names, in rank order.
struct Gathered {
  std::vector<std::string> names;
  std::vector<GatherShare> shares;
};

// A worker's part in a gathering of `workers`, of all if none are named; it is one of them. Parks.
// One share for each name. Throws RpcError: protocol, which names the first member, if that answers
// with another number of shares.
[[nodiscard]] Gathered gather(const Caller& caller, const std::vector<std::string>& workers,
                              GatherShare share, Timeout timeout);

namespace detail {
[[nodiscard]] GatherShare share_of_payload(Payload payload);
[[nodiscard]] Payload payload_of_share(GatherShare share);
[[noreturn]] void throw_unsendable(const BadValue& bad);
[[noreturn]] void throw_unlike(const std::string& giver, const BadValue& bad);
}  // namespace detail

// A value as a share. Throws RpcError (bad_arguments).
template <class T>
GatherShare share_of(const T& value) {
  try {
    Payload payload;
    ValueWriter writer(payload);
    if constexpr (detail::CheckedValue<T>::holds) Value<T>::write(writer, value);
    writer.finish();
    return detail::share_of_payload(std::move(payload));
  } catch (const BadValue& bad) {
    detail::throw_unsendable(bad);
  }
}

// And back. Throws RpcError (bad_arguments), which names the worker that gave it, if it is no T:
// that worker was in another gathering of its program.
template <class T>
T value_of_share(GatherShare share, const std::string& giver) {
  try {
    Payload payload = detail::payload_of_share(std::move(share));
    ValueReader reader(payload);
    T value = Value<T>::read(reader);
    reader.finish();
    return value;
  } catch (const BadValue& bad) {
    detail::throw_unlike(giver, bad);
  }
}

}  // namespace rehearsal
