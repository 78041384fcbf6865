#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/wire/message.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/wire/ready_message.h"

namespace rehearsal {
namespace {

CausalId id(uint64_t number) { return {{number}, {number * 3, UINT64_MAX - number}, number * 5}; }
template <class To>
To id_as(uint64_t number) {
  return To{id(number)};
}
RRefId rref_id(uint64_t number) {
  return {.causal = id(number), .owner = {7}, .owner_incarnation = {number + 1}, .counter = number};
}
Error error() {
  return {.kind = ErrorKind::overloaded,
          .text = "te\0xt",
          .worker = "ps",
          .function = "f",
          .chain = {"a", "b"},
          .type = "ns::Thrown",
          .trace = "at ps: f\nat a: g\n"};
}
PassName pass() {
  return {.id = {id_as<AutogradContextId>(1), 4, {9}},
          .starter = {2},
          .retain_graph = true,
          .create_graph = true,
          .mode = PassMode::fast,
          .context_creator = {3},
          .settled = 3,
          .taken_back = {1, 2}};
}

class CodecTest : public ::testing::Test {
 protected:
  template <class M>
  M round_trip(const M& message) {
    const Message whole{message};
    const auto body = codec_->encode(ready(whole));
    Result<Message> back = codec_->decode(*body);
    EXPECT_TRUE(back.ok()) << back.error().text;
    EXPECT_EQ(back.value().type(), whole.type());
    return std::get<M>(std::move(back).value().content);
  }
  // Encodes it again: equal messages have equal bytes.
  template <class M>
  M expect_same_bytes(const M& message) {
    M back = round_trip(message);
    EXPECT_EQ(codec_->encode(ready(Message{back}))->envelope,
              codec_->encode(ready(Message{message}))->envelope);
    return back;
  }
  at::Tensor through(const at::Tensor& tensor) {
    Response response;
    response.value.tensors.push_back(tensor);
    return round_trip(response).value.tensors.at(0);
  }

  const std::unique_ptr<Codec> codec_ = make_protobuf_codec();
};

// ---- messages ----

TEST_F(CodecTest, ACallComesBackWithAllItsParts) {
  Call call{.id = id_as<CallId>(1), .kind = CallKind::fetch, .function = 5, .name = "aten::add"};
  call.target = rref_id(2);
  call.created = rref_id(3);
  call.created_fork = id_as<ForkId>(4);
  call.arguments.values = std::string("\0\x01\xff", 3);
  call.arguments.tensors = {at::arange(4), at::Tensor()};
  call.arguments.forks = {{rref_id(5), id_as<ForkId>(6), true}, {rref_id(7), id_as<ForkId>(8)}};
  call.time_left = Duration(123456789);
  call.depth = 3;
  call.autograd = AutogradMetadata{id_as<AutogradContextId>(9), id_as<AutogradMessageId>(10), {4}};
  call.context = ContextName{id_as<AutogradContextId>(11), {5}};
  call.trace = TraceContext{.trace = {12, 13}, .parent = 14, .flags = 1};
  call.stream = Hash128{15, 16};
  call.order = id_as<CausalId>(17);
  call.failure = "changed";
  const Call back = expect_same_bytes(call);
  EXPECT_EQ(back.id, call.id);
  EXPECT_EQ(back.kind, CallKind::fetch);
  EXPECT_EQ(back.function, 5u);
  EXPECT_EQ(back.name, "aten::add");
  EXPECT_EQ(back.target, call.target);
  EXPECT_EQ(back.created, call.created);
  EXPECT_EQ(back.created_fork, call.created_fork);
  EXPECT_EQ(back.arguments.values, call.arguments.values);
  EXPECT_TRUE(at::equal(back.arguments.tensors.at(0), at::arange(4)));
  EXPECT_FALSE(back.arguments.tensors.at(1).defined());
  ASSERT_EQ(back.arguments.forks.size(), 2u);
  EXPECT_EQ(back.arguments.forks[0].rref, rref_id(5));
  EXPECT_EQ(back.arguments.forks[0].id, id_as<ForkId>(6));
  EXPECT_TRUE(back.arguments.forks[0].owner_is_parent);
  EXPECT_FALSE(back.arguments.forks[1].owner_is_parent);
  EXPECT_EQ(back.time_left, call.time_left);
  EXPECT_EQ(back.depth, 3u);
  EXPECT_EQ(back.autograd->message, call.autograd->message);
  EXPECT_EQ(back.autograd->creator, WorkerId{4});
  EXPECT_EQ(back.context->id, call.context->id);
  EXPECT_EQ(back.context->creator, WorkerId{5});
  EXPECT_EQ(back.trace, call.trace);
  EXPECT_EQ(back.order, call.order);
  EXPECT_EQ(back.failure, call.failure);
  EXPECT_EQ(back.stream, call.stream);
}

TEST_F(CodecTest, ATraceContextThatCannotBeIsRefused) {
  // Goal: what W3C forbids does not come in. Method: no trace, no parent, unknown flags.
  for (const TraceContext& wrong :
       {TraceContext{.trace = {0, 0}, .parent = 1}, TraceContext{.trace = {1, 0}, .parent = 0},
        TraceContext{.trace = {0, 1}, .parent = 1, .flags = 4}}) {
    Call call{.id = id_as<CallId>(1)};
    call.trace = wrong;
    const Result<Message> read = codec_->decode(*codec_->encode(ready(Message{call})));
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().kind, ErrorKind::protocol);
  }
}

TEST_F(CodecTest, WhatACallDoesNotHaveStaysAbsent) {
  const Call back = expect_same_bytes(Call{.id = id_as<CallId>(1)});
  EXPECT_FALSE(back.target.has_value());
  EXPECT_FALSE(back.created.has_value());
  EXPECT_FALSE(back.autograd.has_value());
  EXPECT_FALSE(back.context.has_value());
  EXPECT_FALSE(back.trace.has_value());
  EXPECT_EQ(back.time_left, Duration(0));
}

TEST_F(CodecTest, AResponseComesBackWithItsValueOrItsError) {
  Response response{.id = id_as<CallId>(1), .value = {}, .error = error(), .autograd = {}};
  EXPECT_EQ(*expect_same_bytes(response).error, error());
  response.value.values = "the exception";
  response.exception = 3;
  EXPECT_EQ(expect_same_bytes(response).exception, 3u);
  EXPECT_EQ(round_trip(response).value.values, "the exception");
  response.exception = 0;
  response.error.reset();
  response.value.values = "v";
  response.autograd =
      AutogradMetadata{id_as<AutogradContextId>(2), id_as<AutogradMessageId>(3), {}};
  const Response back = expect_same_bytes(response);
  EXPECT_EQ(back.id, response.id);
  EXPECT_EQ(back.value.values, "v");
  EXPECT_FALSE(back.error.has_value());
  EXPECT_EQ(back.autograd->context, response.autograd->context);
}

TEST_F(CodecTest, MessagesOfCallsAndStreamsComeBack) {
  EXPECT_EQ(expect_same_bytes(Cancel{id_as<CallId>(1)}).id, id_as<CallId>(1));
  Item item{.call = id_as<CallId>(1), .position = 6, .value = {}};
  item.value.tensors.push_back(at::ones(2));
  item.autograd = AutogradMetadata{id_as<AutogradContextId>(2), id_as<AutogradMessageId>(3), {}};
  const Item value = expect_same_bytes(item);
  EXPECT_EQ(value.position, 6u);
  EXPECT_EQ(value.value.tensors.size(), 1u);
  EXPECT_EQ(value.autograd->message, item.autograd->message);
  EXPECT_FALSE(value.error.has_value());
  const Item none = expect_same_bytes(
      Item{.call = id_as<CallId>(1), .position = 7, .value = {}, .error = error(), .autograd = {}});
  EXPECT_EQ(*none.error, error());
  EXPECT_EQ(expect_same_bytes(Call{.id = id_as<CallId>(1), .credit = 16}).credit, 16u);
  EXPECT_EQ(expect_same_bytes(Credit{id_as<CallId>(1), 9}).items, 9u);
  const End end = expect_same_bytes(End{id_as<CallId>(1), 4, error()});
  EXPECT_EQ(end.items, 4u);
  EXPECT_EQ(*end.error, error());
  EXPECT_EQ(end.exception, 0u);
  End thrown{id_as<CallId>(1), 4, error()};
  thrown.exception = 3;
  thrown.value.tensors.push_back(at::ones(2));
  const End found = expect_same_bytes(thrown);
  EXPECT_EQ(found.exception, 3u);
  EXPECT_EQ(found.value.tensors.size(), 1u);
}

TEST_F(CodecTest, MessagesOfReferencesComeBack) {
  const ForkRequest request = expect_same_bytes(ForkRequest{rref_id(1), id_as<ForkId>(2)});
  EXPECT_EQ(request.rref, rref_id(1));
  EXPECT_EQ(request.fork, id_as<ForkId>(2));
  EXPECT_EQ(*expect_same_bytes(ForkConfirm{id_as<ForkId>(1), error()}).error, error());
  EXPECT_FALSE(expect_same_bytes(ForkConfirm{id_as<ForkId>(1), {}}).error.has_value());
  EXPECT_EQ(expect_same_bytes(ChildAccept{id_as<ForkId>(3)}).fork, id_as<ForkId>(3));
  EXPECT_EQ(expect_same_bytes(UserDelete{rref_id(1), id_as<ForkId>(2)}).fork, id_as<ForkId>(2));
}

TEST_F(CodecTest, MessagesOfAutogradComeBack) {
  const auto context = id_as<AutogradContextId>(1);
  EXPECT_EQ(expect_same_bytes(ContextReached{context}).context, context);
  EXPECT_EQ(expect_same_bytes(ContextRelease{context}).context, context);
  Gradients gradients{.pass = pass(), .message = id_as<AutogradMessageId>(2), .gradients = {}};
  gradients.gradients.tensors = {at::Tensor(), at::ones(3)};
  gradients.unreached = {0};
  const Gradients back = expect_same_bytes(gradients);
  EXPECT_EQ(back.pass.id, pass().id);
  EXPECT_EQ(back.pass.starter, WorkerId{2});
  EXPECT_TRUE(back.pass.retain_graph);
  EXPECT_EQ(back.pass.context_creator, WorkerId{3});
  EXPECT_FALSE(back.gradients.tensors.at(0).defined());
  EXPECT_EQ(back.unreached, gradients.unreached);
  EXPECT_EQ(expect_same_bytes(GradientsAnswered{pass(), gradients.message}).message,
            gradients.message);
  const PassFinish finish = expect_same_bytes(PassFinish{pass(), PassWave::resume});
  EXPECT_EQ(finish.pass.id, pass().id);
  EXPECT_EQ(finish.wave, PassWave::resume);
  const PassFinished finished = expect_same_bytes(PassFinished{pass(), error(), true});
  EXPECT_EQ(*finished.error, error());
  EXPECT_TRUE(finished.undecided);
  const Marks marks = expect_same_bytes(Marks{pass(), {{gradients.message, {0, 7}}, {{}, {1}}}});
  ASSERT_EQ(marks.marks.size(), 2u);
  EXPECT_EQ(marks.marks[0].message, gradients.message);
  EXPECT_EQ(marks.marks[0].tensors, (std::vector<uint32_t>{0, 7}));
  EXPECT_EQ(marks.pass.settled, 3u);
  EXPECT_EQ(marks.pass.taken_back, (std::vector<uint64_t>{1, 2}));
  EXPECT_TRUE(marks.pass.create_graph);
  EXPECT_EQ(marks.pass.mode, PassMode::fast);
  EXPECT_EQ(expect_same_bytes(MarksAnswered{pass()}).pass.id, pass().id);
  EXPECT_EQ(expect_same_bytes(PassFailed{pass(), error()}).error, error());
}

TEST_F(CodecTest, MessagesOfTheGroupComeBack) {
  EXPECT_EQ(expect_same_bytes(Ready{3}).round, 3u);
  const ShutdownProbe probe = expect_same_bytes(ShutdownProbe{1, 77});
  EXPECT_EQ(probe.phase, 1u);
  EXPECT_EQ(probe.wave, 77u);
  const ShutdownReport report =
      expect_same_bytes(ShutdownReport{1, 5, true, {{3}, {9}}, 1000, true, 7});
  EXPECT_TRUE(report.quiet);
  EXPECT_EQ(report.lost, (std::vector<WorkerId>{{3}, {9}}));
  EXPECT_EQ(report.activity, 1000u);
  EXPECT_TRUE(report.all_arrived);
  EXPECT_EQ(report.lives, 7u);
  EXPECT_FALSE(expect_same_bytes(Leave{false}).graceful);
  EXPECT_EQ(expect_same_bytes(Goodbye{error()}).error, error());
  const GroupView view = expect_same_bytes(GroupView{true, {{{3}, 1}, {{0}, 7}}});
  EXPECT_TRUE(view.member);
  EXPECT_EQ(view.met, (std::vector<MetMember>{{{3}, 1}, {{0}, 7}}));
  (void)expect_same_bytes(Leaving{});
  (void)expect_same_bytes(NothingMore{});
}

TEST_F(CodecTest, EveryTypeOfMessageHasANameAndKeepsItsNumber) {
  EXPECT_EQ(message_name(0), "none");
  EXPECT_EQ(message_name(Message{Call{}}.type()), "Call");
  EXPECT_EQ(message_name(Message{ShutdownProbe{}}.type()), "ShutdownProbe");
  EXPECT_EQ(message_name(Message{NothingMore{}}.type()), "NothingMore");
  EXPECT_EQ(message_name(Message{UserDelete{}}.type()), "UserDelete");
  EXPECT_EQ(message_name(999), "?");
  EXPECT_EQ(causal_id_of(Message{Cancel{id_as<CallId>(4)}}), id(4));
  EXPECT_EQ(causal_id_of(Message{UserDelete{rref_id(1), id_as<ForkId>(5)}}), id(5));
  EXPECT_EQ(causal_id_of(Message{Ready{}}), CausalId{});
}

// ---- tensors ----

TEST_F(CodecTest, TensorsOfEveryTypeComeBack) {
  const std::vector<c10::ScalarType> types = {
      at::kByte,   at::kChar,          at::kShort,        at::kInt,         at::kLong,
      at::kHalf,   at::kFloat,         at::kDouble,       at::kComplexHalf, at::kComplexFloat,
      at::kBool,   at::kComplexDouble, at::kBFloat16,     at::kUInt16,      at::kUInt32,
      at::kUInt64, at::kFloat8_e5m2,   at::kFloat8_e4m3fn};
  for (const c10::ScalarType type : types) {
    // A bool is a byte of 0 or 1; other types take any bytes.
    const int64_t values = type == at::kBool ? 2 : 48;
    const at::Tensor tensor = at::arange(48, at::kByte).remainder(values).reshape({3, 16});
    const at::Tensor typed = tensor.view(type).clone();
    const at::Tensor back = through(typed);
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_EQ(back.sizes(), typed.sizes());
    EXPECT_TRUE(at::equal(back.view(at::kByte), tensor)) << c10::toString(type);
  }
}

TEST_F(CodecTest, TensorsWithoutElementsHaveNoSegment) {
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{0}, {0, 3}, {2, 0, 4}, {0, 3000000000}}) {
    Response response;
    response.value.tensors.push_back(at::empty(sizes, at::kFloat));
    EXPECT_TRUE(codec_->encode(ready(Message{response}))->segments.empty());
    EXPECT_EQ(through(response.value.tensors[0]).sizes(), sizes);
  }
}

TEST_F(CodecTest, ScalarsAndUndefinedTensorsComeBack) {
  const at::Tensor scalar = at::scalar_tensor(2.5);
  EXPECT_EQ(through(scalar).dim(), 0);
  EXPECT_EQ(through(scalar).item<double>(), 2.5);
  EXPECT_FALSE(through(at::Tensor()).defined());
}

TEST_F(CodecTest, ThePlacesOfTensorsComeBack) {
  const std::vector<TensorPlace> places = {{0, 0}, {1, 128}, {0, 2}};
  Call call{.id = id_as<CallId>(1)};
  call.arguments.tensors = {at::ones(2), at::ones(3), at::zeros({2, 3}).t()};
  call.arguments.on_devices().places = places;
  EXPECT_EQ(round_trip(call).arguments.devices->places, places);
  Item item{.call = id_as<CallId>(2), .position = 1, .value = call.arguments};
  EXPECT_EQ(round_trip(item).value.devices->places, places);
  call.arguments.devices->places[1].to = 129;
  const auto refused = codec_->decode(*codec_->encode(ready(Message{call})));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text.find("tensor device"), std::string::npos) << refused.error().text;
}

TEST_F(CodecTest, TensorsOfTheCpuHaveNoPlaces) {
  Call call{.id = id_as<CallId>(1)};
  call.arguments.tensors = {at::ones(2), at::Tensor()};
  EXPECT_TRUE(round_trip(call).arguments.places().empty());
}

TEST_F(CodecTest, AViewSendsOnlyItsOwnElements) {
  // One row and one column of a large matrix; a transposed, an expanded and a conjugated view.
  const at::Tensor large = at::arange(1000000, at::kDouble).reshape({1000, 1000});
  const at::Tensor complex = at::complex(at::ones({2}), at::ones({2}));
  for (const at::Tensor& view :
       {large[7], large.select(1, 7), large.slice(0, 0, 10).t(), at::ones({1}).expand({5, 4}),
        at::conj(complex), at::imag(at::conj(complex))}) {
    Response response;
    response.value.tensors.push_back(view);
    const auto body = codec_->encode(ready(Message{response}));
    ASSERT_EQ(body->segments.size(), 1u);
    EXPECT_EQ(body->segments[0].bytes, static_cast<uint64_t>(view.numel()) * view.element_size());
    EXPECT_TRUE(at::equal(through(view), view));
  }
}

TEST_F(CodecTest, ALargeTensorIsNotCopiedAndASmallOneIs) {
  // A small tensor cannot be changed on its way; a large one shares its storage.
  const at::Tensor small = at::zeros({8});
  const at::Tensor large = at::zeros({100000});
  Response response;
  response.value.tensors = {small, large};
  const auto body = codec_->encode(ready(Message{response}));
  EXPECT_NE(body->segments[0].data, small.data_ptr());
  EXPECT_EQ(body->segments[1].data, large.data_ptr());
  small.fill_(1);
  Result<Message> back = codec_->decode(*body);
  EXPECT_EQ(std::get<Response>(back.value().content).value.tensors[0].sum().item<float>(), 0);
}

TEST_F(CodecTest, AReceivedTensorOwnsItsSegment) {
  // The frame is gone; the tensor keeps the memory.
  at::Tensor back;
  std::weak_ptr<void> memory;
  {
    Response response;
    response.value.tensors.push_back(at::ones({100000}));
    const auto body = codec_->encode(ready(Message{response}));
    memory = body->segments[0].owner;
    Result<Message> decoded = codec_->decode(*body);
    back = std::get<Response>(decoded.value().content).value.tensors[0];
  }
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(back.sum().item<float>(), 100000);
  back.reset();
  EXPECT_TRUE(memory.expired());
}

TEST_F(CodecTest, RequiringAGradientTravelsButTheGraphDoesNot) {
  const at::Tensor leaf = at::ones({2}).set_requires_grad(true);
  const at::Tensor made = leaf * 2;
  for (const at::Tensor& tensor : {leaf, made}) {
    const at::Tensor back = through(tensor);
    EXPECT_TRUE(back.requires_grad());
    EXPECT_TRUE(back.is_leaf());
  }
  EXPECT_FALSE(through(at::ones({2})).requires_grad());
}

}  // namespace
}  // namespace rehearsal
