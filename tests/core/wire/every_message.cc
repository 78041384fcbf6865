#include "tests/core/wire/every_message.h"

#include <ATen/Functions.h>
#include <ATen/quantized/Quantizer.h>

#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

CausalId id(uint64_t number) { return {{number}, {number, ~number}, number}; }

RRefId rref() { return {.causal = id(1), .owner = {1}, .owner_incarnation = {2}, .counter = 3}; }

PassName pass() { return {.id = {AutogradContextId{id(5)}, 1, {6}}, .starter = {1}}; }

Error error() {
  return {.kind = ErrorKind::timeout, .text = "text", .worker = "w", .chain = {"a"}};
}

AutogradMetadata autograd() { return {AutogradContextId{id(5)}, AutogradMessageId{id(8)}, {1}}; }

Message call() {
  Call call{.id = CallId{id(7)}, .arguments = payload_of_every_form(), .time_left = Duration(5)};
  call.target = call.created = rref();
  call.created_fork = ForkId{id(4)};
  call.depth = 2;
  call.autograd = autograd();
  call.context = ContextName{AutogradContextId{id(5)}, {1}};
  call.credit = 3;
  call.stream = Hash128{1, 2};
  return Message{call};
}

std::vector<Message> of_calls() {
  const CallId id_of_call{id(7)};
  const Payload payload = payload_of_every_form();
  return {call(),
          Message{Call{.id = id_of_call, .kind = CallKind::operator_, .name = "aten::add"}},
          Message{Response{id_of_call, payload, error(), {}, 2}},
          Message{Response{id_of_call, payload, {}, autograd()}},
          Message{Cancel{id_of_call}},
          Message{Item{id_of_call, 1, payload}},
          Message{Credit{id_of_call, 9}},
          Message{End{id_of_call, 1, error()}}};
}

std::vector<Message> of_references_and_passes() {
  const AutogradMessageId message{id(8)};
  return {Message{ForkRequest{rref(), ForkId{id(4)}}},
          Message{ForkConfirm{ForkId{id(4)}, error()}},
          Message{ChildAccept{ForkId{id(4)}}},
          Message{UserDelete{rref(), ForkId{id(4)}}},
          Message{ContextReached{AutogradContextId{id(5)}}},
          Message{ContextRelease{AutogradContextId{id(5)}}},
          Message{Gradients{pass(), message, payload_of_every_form(), autograd(), {1, 2}}},
          Message{GradientsAnswered{pass(), message}},
          Message{PassFinish{pass(), PassWave::resume}},
          Message{PassFinished{pass(), error(), true}},
          Message{PassFailed{pass(), error()}},
          Message{Marks{pass(), {{message, {0, 2}}, {AutogradMessageId{id(9)}, {1}}}}},
          Message{MarksAnswered{pass()}}};
}

std::vector<Message> of_groups() {
  return {Message{Ready{3}},
          Message{ShutdownProbe{1, 2}},
          Message{ShutdownReport{1, 2, true, {{1}, {2}}, 3, true, 2}},
          Message{Leave{true}},
          Message{Goodbye{error()}},
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
  payload.forks = {{rref(), ForkId{id(4)}, true}};
  return payload;
}

std::vector<Message> every_message() {
  std::vector<Message> all;
  for (const auto& some : {of_calls(), of_references_and_passes(), of_groups()})
    for (const Message& message : some) all.push_back(ready(message));
  return all;
}

}  // namespace rehearsal
