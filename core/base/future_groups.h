#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/future.h"

// One future of several: of one type, or of different types.
namespace rehearsal {

// Says what becomes of the other futures when one of several fails. Those that are cancelled are
// given up as by Future::cancel: the callees are told.
enum class IfOneFails : uint8_t { keep_rest, cancel_rest };

namespace detail {

// The parts of a gathering, in the order given; each is complete.
using CompleteParts = std::vector<std::shared_ptr<FutureCore>>;

struct Gathering {
  IfOneFails if_one_fails = IfOneFails::keep_rest;
  bool takes_errors = false;  // else the first one is that of the whole, at once
  // Completes the whole, when all parts are; on the strand.
  UniqueFunction<void(FutureCore& whole, const CompleteParts& parts)> finish;
};

// Completes `whole` when `parts` are complete, which are futures of its node. One that takes no
// errors cancels them when it is cancelled. Any thread; never parks. Throws RpcError
// (bad_arguments) if one is null.
void gather_futures(const std::shared_ptr<FutureCore>& whole,
                    std::vector<std::shared_ptr<FutureCore>> parts, Gathering gathering);

// Throws RpcError (bad_arguments) if one is null.
void expect_all_there(const std::vector<std::shared_ptr<FutureCore>>& parts);

// That of the first of them. Throws RpcError (bad_arguments) if it is null, as there is none, or as
// it is of no value. `who` is for people.
const std::shared_ptr<NodeStrand>& strand_of(const std::shared_ptr<FutureCore>& first,
                                             std::string_view who);
template <class T>
const std::shared_ptr<NodeStrand>& strand_of(const std::vector<Future<T>>& futures,
                                             std::string_view who) {
  static const std::shared_ptr<FutureCore> none;
  return strand_of(futures.empty() ? none : futures.front().core(), who);
}

template <class T>
std::vector<std::shared_ptr<FutureCore>> cores_of(const std::vector<Future<T>>& futures) {
  std::vector<std::shared_ptr<FutureCore>> cores;
  for (const Future<T>& future : futures) cores.push_back(future.core());
  return cores;
}

template <class... T, size_t... I>
std::tuple<T...> values_of(const CompleteParts& parts, std::index_sequence<I...>) {
  return {FutureState<T>::of(*parts[I]).value()...};
}
template <class... T, size_t... I>
std::tuple<Result<T>...> results_of(const CompleteParts& parts, std::index_sequence<I...>) {
  return {FutureState<T>::of(*parts[I]).result()...};
}

}  // namespace detail

// ---- of one type ------------------------------------------------------------

// A future of all values, in the order given; the first error completes it at once. An empty
// vector gives an empty one. All futures belong to the node of `strand`.
template <class T>
Future<std::vector<T>> when_all(const std::shared_ptr<NodeStrand>& strand, IfOneFails if_one_fails,
                                const std::vector<Future<T>>& futures) {
  auto whole = std::make_shared<FutureState<std::vector<T>>>(strand, CausalId{});
  const auto finish = [](FutureCore& whole, const detail::CompleteParts& parts) {
    std::vector<T> values;
    for (const auto& part : parts) values.push_back(FutureState<T>::of(*part).value());
    FutureState<std::vector<T>>::of(whole).complete(std::move(values));
  };
  detail::gather_futures(whole, detail::cores_of(futures),
                         {.if_one_fails = if_one_fails, .takes_errors = false, .finish = finish});
  return Future<std::vector<T>>(std::move(whole));
}
template <class T>
Future<std::vector<T>> when_all(const std::shared_ptr<NodeStrand>& strand,
                                const std::vector<Future<T>>& futures) {
  return when_all(strand, IfOneFails::keep_rest, futures);
}

// The same, of at least one future: of none nobody knows whose it is. Throws RpcError
// (bad_arguments).
template <class T>
Future<std::vector<T>> when_all(const std::vector<Future<T>>& futures) {
  return when_all(detail::strand_of(futures, "when_all"), futures);
}

// The outcomes of all futures, values and errors, in the order given: complete when the last is,
// never with an error of its own, unless it is cancelled, which leaves them alone. An empty vector
// gives an empty one. All belong to the node of `strand`.
template <class T>
Future<std::vector<Result<T>>> collect_all(const std::shared_ptr<NodeStrand>& strand,
                                           IfOneFails if_one_fails,
                                           const std::vector<Future<T>>& futures) {
  auto whole = std::make_shared<FutureState<std::vector<Result<T>>>>(strand, CausalId{});
  const auto finish = [](FutureCore& whole, const detail::CompleteParts& parts) {
    std::vector<Result<T>> results;
    for (const auto& part : parts) results.push_back(FutureState<T>::of(*part).result());
    FutureState<std::vector<Result<T>>>::of(whole).complete(std::move(results));
  };
  detail::gather_futures(whole, detail::cores_of(futures),
                         {.if_one_fails = if_one_fails, .takes_errors = true, .finish = finish});
  return Future<std::vector<Result<T>>>(std::move(whole));
}
template <class T>
Future<std::vector<Result<T>>> collect_all(const std::shared_ptr<NodeStrand>& strand,
                                           const std::vector<Future<T>>& futures) {
  return collect_all(strand, IfOneFails::keep_rest, futures);
}

// ---- of different types -----------------------------------------------------

// The same of at least two futures of any types, as a tuple:
//
//   const auto [loss, steps] = when_all(worker.rpc_async(…), worker.rpc_async(…)).wait();
template <class A, class B, class... More>
Future<std::tuple<A, B, More...>> when_all(IfOneFails if_one_fails, const Future<A>& a,
                                           const Future<B>& b, const Future<More>&... more) {
  using All = std::tuple<A, B, More...>;
  auto whole =
      std::make_shared<FutureState<All>>(detail::strand_of(a.core(), "when_all"), CausalId{});
  const auto finish = [](FutureCore& whole, const detail::CompleteParts& parts) {
    FutureState<All>::of(whole).complete(detail::values_of<A, B, More...>(
        parts, std::make_index_sequence<std::tuple_size_v<All>>()));
  };
  detail::gather_futures(whole, {a.core(), b.core(), more.core()...},
                         {.if_one_fails = if_one_fails, .takes_errors = false, .finish = finish});
  return Future<All>(std::move(whole));
}
template <class A, class B, class... More>
Future<std::tuple<A, B, More...>> when_all(const Future<A>& a, const Future<B>& b,
                                           const Future<More>&... more) {
  return when_all(IfOneFails::keep_rest, a, b, more...);
}

template <class A, class B, class... More>
Future<std::tuple<Result<A>, Result<B>, Result<More>...>> collect_all(IfOneFails if_one_fails,
                                                                      const Future<A>& a,
                                                                      const Future<B>& b,
                                                                      const Future<More>&... more) {
  using All = std::tuple<Result<A>, Result<B>, Result<More>...>;
  auto whole =
      std::make_shared<FutureState<All>>(detail::strand_of(a.core(), "collect_all"), CausalId{});
  const auto finish = [](FutureCore& whole, const detail::CompleteParts& parts) {
    FutureState<All>::of(whole).complete(detail::results_of<A, B, More...>(
        parts, std::make_index_sequence<std::tuple_size_v<All>>()));
  };
  detail::gather_futures(whole, {a.core(), b.core(), more.core()...},
                         {.if_one_fails = if_one_fails, .takes_errors = true, .finish = finish});
  return Future<All>(std::move(whole));
}
template <class A, class B, class... More>
Future<std::tuple<Result<A>, Result<B>, Result<More>...>> collect_all(const Future<A>& a,
                                                                      const Future<B>& b,
                                                                      const Future<More>&... more) {
  return collect_all(IfOneFails::keep_rest, a, b, more...);
}

// ---- the first --------------------------------------------------------------

// The position of the first future that is complete, by value or by error; its `result` is there
// then. If several are, the one that came first on the strand. Throws RpcError (bad_arguments) if
// there is no future, or one of no value.
template <class T>
Future<size_t> when_any(const std::vector<Future<T>>& futures) {
  const std::shared_ptr<NodeStrand>& strand = detail::strand_of(futures, "when_any");
  auto next = std::make_shared<FutureState<size_t>>(strand, CausalId{});
  detail::expect_all_there(detail::cores_of(futures));
  strand->post([next, futures] {
    for (size_t i = 0; i < futures.size(); ++i)
      futures[i].core()->observe([next, i](FutureCore&) {
        if (!next->ready()) next->complete(i);
      });
  });
  return Future<size_t>(next);
}

}  // namespace rehearsal
