#include "tests/core/wire/every_message.h"

#include <ATen/Functions.h>
#include <ATen/quantized/Quantizer.h>

#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

CausalId any_id(uint64_t number) { return {{number}, {number, ~number}, number}; }

RRefId rref() {
  return {.causal = any_id(1), .owner = {1}, .owner_incarnation = {2}, .counter = 3};
}

PassName any_pass() { return {.id = {AutogradContextId{any_id(5)}, 1, {6}}, .starter = {1}}; }

Error any_error() {
  return {.kind = ErrorKind::timeout, .text = "text", .worker = "w", .chain = {"a"}};
}

AutogradMetadata autograd() {
  return {AutogradContextId{any_id(5)}, AutogradMessageId{any_id(8)}, {1}};
}

Message call() {
  Call call{
      .id = CallId{any_id(7)}, .arguments = payload_of_every_form(), .time_left = Duration(5)};
  call.target = call.created = rref();
  call.created_fork = ForkId{any_id(4)};
  call.depth = 2;
  call.autograd = autograd();
  call.context = ContextName{AutogradContextId{any_id(5)}, {1}};
  call.credit = 3;
  call.stream = Hash128{1, 2};
  call.order = any_id(6);
  return Message{call};
}

std::vector<Message> of_calls() {
  const CallId id_of_call{any_id(7)};
  const Payload payload = payload_of_every_form();
  return {call(),
          Message{Call{.id = id_of_call, .kind = CallKind::operator_, .name = "aten::add"}},
          Message{Call{.id = id_of_call, .kind = CallKind::operator_, .failure = "changed"}},
          Message{Response{id_of_call, payload, any_error(), {}, 2}},
          Message{Response{id_of_call, payload, {}, autograd()}},
          Message{Cancel{id_of_call}},
          Message{Item{id_of_call, 1, payload}},
          Message{Credit{id_of_call, 9}},
          Message{End{id_of_call, 1, any_error()}}};
}

std::vector<Message> of_references_and_passes() {
  const AutogradMessageId message{any_id(8)};
  return {Message{ForkRequest{rref(), ForkId{any_id(4)}}},
          Message{ForkConfirm{ForkId{any_id(4)}, any_error()}},
          Message{ChildAccept{ForkId{any_id(4)}}},
          Message{UserDelete{rref(), ForkId{any_id(4)}}},
          Message{ContextReached{AutogradContextId{any_id(5)}}},
          Message{ContextRelease{AutogradContextId{any_id(5)}}},
          Message{Gradients{any_pass(), message, payload_of_every_form(), autograd(), {1, 2}}},
          Message{GradientsAnswered{any_pass(), message}},
          Message{PassFinish{any_pass(), PassWave::resume}},
          Message{PassFinished{any_pass(), any_error(), true}},
          Message{PassFailed{any_pass(), any_error()}},
          Message{Marks{any_pass(), {{message, {0, 2}}, {AutogradMessageId{any_id(9)}, {1}}}}},
          Message{MarksAnswered{any_pass()}},
          Message{LoansReturned{{1, 7}}}};
}

std::vector<Message> of_groups() {
  return {Message{Ready{3}},
          Message{ShutdownProbe{1, 2}},
          Message{ShutdownReport{1, 2, true, {{1}, {2}}, 3, true, 2}},
          Message{Leave{true}},
          Message{Goodbye{any_error()}},
          Message{GroupView{true, {{{1}, 2}, {{0}, 1}}}},
          Message{Leaving{}},
          Message{NothingMore{}}};
}

}  // namespace

Payload payload_of_every_form() {
  Payload payload;
  payload.values = "values";
  payload.tensors = {at::arange(6).reshape({2, 3}),
                     at::Tensor(),
                     at::empty({0, 4}),
                     at::ones({2}).set_requires_grad(true),
                     at::arange(6).reshape({2, 3}).t(),
                     at::arange(12).reshape({4, 3}).narrow(1, 0, 2),
                     at::eye(2).to_sparse(),
                     at::eye(4).to_sparse_csr(),
                     at::eye(4).to_sparse_bsc({2, 2}),
                     at::quantize_per_tensor(at::ones({2}), 0.5, 1, at::kQInt8),
                     at::quantize_per_channel(at::ones({2, 2}), at::ones({2}),
                                              at::zeros({2}, at::kLong), 0, at::kQUInt8)};
  payload.forks = {{rref(), ForkId{any_id(4)}, true}};
  return payload;
}

std::vector<Message> every_message() {
  std::vector<Message> all;
  for (const auto& some : {of_calls(), of_references_and_passes(), of_groups()})
    for (const Message& message : some) all.push_back(ready(message));
  return all;
}

}  // namespace rehearsal
