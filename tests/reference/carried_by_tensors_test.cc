// Goal: whatever a tensor carries beside its elements is kept, refused, or among the things that
// core/values/value_torch.h lists as not kept. Method: rows of PyTorch's table have none of this;
// a tensor for each line of that list, as argument, result, in an IValue, fetched from a reference
// and in a stream, from another worker and from the worker itself, in both worlds.
#include <ATen/ATen.h>
#include <ATen/core/Dimname.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/reference/row.h"

namespace rehearsal::reference::carried_by_tensors_test {
namespace {

using LineTensors = std::vector<at::Tensor>;

// Tensors, and the words for them where they are made and where they arrive (words_for below).
struct CarriedLine {
  std::function<LineTensors()> make;
  std::string here;
  std::string there;
};

at::Tensor requiring_gradients() { return at::ones({2, 3}).set_requires_grad(true); }

at::Tensor with_gradient() {
  const at::Tensor tensor = requiring_gradients();
  tensor.mutable_grad() = at::ones({2, 3});
  return tensor;
}

at::Tensor with_hook() {
  const at::Tensor tensor = requiring_gradients();
  tensor.register_hook([](const at::Tensor& gradient) { return gradient * 2; });
  return tensor;
}

at::Tensor with_name() {
  const at::Tensor tensor = at::ones({2, 3});
  torch::autograd::impl::set_name(tensor, "weight");
  return tensor;
}

at::Tensor of_inference() {
  const c10::InferenceMode inference;
  return at::ones({2, 3});
}

at::Tensor wrapped_number() {
  const at::Tensor tensor = at::scalar_tensor(2, at::kDouble);
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

at::Tensor images() { return at::ones({2, 3, 4, 5}).contiguous(at::MemoryFormat::ChannelsLast); }

at::Tensor complex_numbers() { return at::complex(at::ones({2}), at::ones({2})); }

// Those that are kept, then those that are not.
const std::vector<CarriedLine>& sent_lines() {
  static const std::vector<CarriedLine> lines = {
      {[] { return LineTensors{requiring_gradients()}; }, " requires_grad", " requires_grad"},
      {[] {
         return LineTensors{at::ones({2, 3}).t().clone()};
       },
       " strided", " strided"},
      {[] { return LineTensors{images()}; }, " strided channels_last", " strided channels_last"},
      {[] { return LineTensors{at::eye(3).to_sparse()}; }, " coalesced", " coalesced"},
      {[] { return LineTensors{with_gradient()}; }, " requires_grad gradient", " requires_grad"},
      {[] { return LineTensors{with_hook()}; }, " requires_grad hook", " requires_grad"},
      {[] { return LineTensors{with_name()}; }, " name", ""},
      {[] {
         return LineTensors{at::ones({4, 3}).narrow(0, 1, 2)};
       },
       " view", ""},
      {[] {
         return LineTensors(2, at::ones({2, 3}));
       },
       " shared", ""},
      {[] { return LineTensors{complex_numbers().conj()}; }, " view lazy", ""},
      {[] { return LineTensors{complex_numbers()._neg_view()}; }, " view lazy", ""},
      {[] {
         return LineTensors{at::_efficientzerotensor({2, 3})};
       },
       " lazy", ""},
      {[] { return LineTensors{at::quantize_per_tensor(images(), 0.5, 1, at::kQInt8)}; },
       " strided channels_last", ""},
      {[] { return LineTensors{of_inference()}; }, " inference", ""},
      {[] { return LineTensors{wrapped_number()}; }, " wrapped_number", ""}};
  return lines;
}

at::Tensor with_named_dimensions() {
  const at::Dimname rows = at::Dimname::fromSymbol(at::Symbol::dimname("rows"));
  return at::ones({2, 3}).refine_names({rows, at::Dimname::wildcard()});
}

// REQUIRES: a level of forward-mode differentiation, which the whole process has.
at::Tensor dual_tensor() { return at::_make_dual(at::ones({2, 3}), at::ones({2, 3}), 0); }

at::Tensor nested_tensor() {
  return at::_nested_tensor_from_tensor_list({at::ones(2), at::ones(3)});
}

// Tensors that are refused, and how the refusal begins.
struct RefusedLine {
  at::Tensor (*make)();
  std::string why;
};
const std::vector<RefusedLine>& refused_lines() {
  static const std::vector<RefusedLine> lines = {
      {&with_named_dimensions, "a tensor whose dimensions have names cannot be sent"},
      {&dual_tensor, "a dual tensor cannot be sent"},
      {&nested_tensor, "a nested tensor cannot be sent"}};
  return lines;
}

std::string words_of_memory(const at::Tensor& tensor) {
  if (tensor.layout() == at::kSparse) return tensor.is_coalesced() ? " coalesced" : "";
  std::string words = tensor.is_contiguous() ? "" : " strided";
  if (tensor.dim() == 4 && tensor.is_contiguous(at::MemoryFormat::ChannelsLast))
    words += " channels_last";
  if (tensor.is_view()) words += " view";
  if (tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor()) words += " lazy";
  return words;
}

// The things that the tensors carry, a word each.
std::string words_for(const LineTensors& tensors) {
  std::string words;
  for (const at::Tensor& tensor : tensors) {
    const auto* const autograd = torch::autograd::impl::get_autograd_meta(tensor);
    if (tensor.requires_grad()) words += " requires_grad";
    words += words_of_memory(tensor);
    if (tensor.grad().defined()) words += " gradient";
    if (autograd != nullptr && !autograd->hooks_.empty()) words += " hook";
    if (!tensor.name().empty()) words += " name";
    if (tensor.is_inference()) words += " inference";
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) words += " wrapped_number";
  }
  if (tensors.size() == 2 && tensors[0].is_alias_of(tensors[1])) words += " shared";
  return words;
}

c10::IValue in_an_ivalue(const LineTensors& tensors) {
  return c10::List<at::Tensor>(at::TensorList(tensors));
}

LineTensors tensors_of_line(int64_t line) { return sent_lines().at(line).make(); }
c10::IValue ivalue_of_line(int64_t line) { return in_an_ivalue(tensors_of_line(line)); }
std::string words_there(const LineTensors& tensors) { return words_for(tensors); }
std::string words_there_of(const c10::IValue& value) { return words_for(value.toTensorVector()); }
void stream_of_line(StreamWriter<LineTensors>& out, int64_t line) {
  out.write(tensors_of_line(line));
}

at::Tensor refused_tensor(int64_t line) { return refused_lines().at(line).make(); }
c10::IValue refused_ivalue(int64_t line) { return in_an_ivalue({refused_tensor(line)}); }
void refused_stream(StreamWriter<at::Tensor>& out, int64_t line) {
  out.write(refused_tensor(line));
}

FunctionRegistry carrying_functions() {
  FunctionRegistry registry;
  registry.function("tensors_of_line", &tensors_of_line)
      .function("ivalue_of_line", &ivalue_of_line)
      .function("words_there", &words_there)
      .function("words_there_of", &words_there_of)
      .function("stream_of_line", &stream_of_line)
      .function("refused_tensor", &refused_tensor)
      .function("refused_ivalue", &refused_ivalue)
      .function("refused_stream", &refused_stream);
  return registry;
}

void expect_line(Worker& worker, const std::string& to, int64_t number) {
  SCOPED_TRACE("line " + std::to_string(number) + " at " + to);
  const CarriedLine& line = sent_lines().at(number);
  EXPECT_EQ(words_for(line.make()), line.here);
  EXPECT_EQ(worker.rpc_sync(to, &words_there, line.make()), line.there);
  EXPECT_EQ(worker.rpc_sync(to, &words_there_of, in_an_ivalue(line.make())), line.there);
  EXPECT_EQ(words_for(worker.rpc_sync(to, &tensors_of_line, number)), line.there);
  EXPECT_EQ(words_for(worker.rpc_sync(to, &ivalue_of_line, number).toTensorVector()), line.there);
  EXPECT_EQ(words_for(worker.remote(to, &tensors_of_line, number).to_here()), line.there);
  auto stream = worker.rpc_stream(to, &stream_of_line, number);
  EXPECT_EQ(words_for(stream.next().value()), line.there);
}

// The worker that refuses it, for this reason.
template <class F>
std::string refused_by(const std::string& why, F body) {
  const Error error = error_of(std::move(body));
  EXPECT_EQ(error.kind, ErrorKind::bad_arguments) << to_string(error);
  EXPECT_TRUE(contains(error.text, why)) << error.text;
  return error.worker;
}

void expect_refused_line(Worker& worker, const std::string& to, int64_t number) {
  SCOPED_TRACE("line " + std::to_string(number) + " at " + to);
  const auto& [make, why] = refused_lines().at(number);
  const LineTensors given = {make()};
  const auto by = [&why = why](auto body) { return refused_by(why, body); };
  const auto here = worker.name();
  EXPECT_EQ(by([&] { (void)worker.rpc_sync(to, &words_there, given); }), here);
  EXPECT_EQ(by([&] { (void)worker.rpc_sync(to, &words_there_of, in_an_ivalue(given)); }), here);
  EXPECT_EQ(by([&] { (void)worker.rpc_sync(to, &refused_tensor, number); }), to);
  EXPECT_EQ(by([&] { (void)worker.rpc_sync(to, &refused_ivalue, number); }), to);
  EXPECT_EQ(by([&] { (void)worker.remote(to, &refused_tensor, number).to_here(); }), to);
  auto stream = worker.rpc_stream(to, &refused_stream, number);
  (void)by([&] { (void)stream.next(); });
}

TEST(ReferenceCarriedByTensors, EachThingIsKeptOrListedAsNotKept) {
  in_both_worlds(one_caller(carrying_functions(), [](Worker& worker) {
    for (const std::string& to : {worker.name(), after(worker)})
      for (size_t line = 0; line < sent_lines().size(); ++line)
        expect_line(worker, to, static_cast<int64_t>(line));
  }));
}

TEST(ReferenceCarriedByTensors, WhatWouldMeanLessWhereItArrivesIsRefused) {
  const uint64_t level = torch::autograd::forward_ad::enter_dual_level();
  in_both_worlds(one_caller(carrying_functions(), [](Worker& worker) {
    for (const std::string& to : {worker.name(), after(worker)}) {
      for (size_t line = 0; line < refused_lines().size(); ++line)
        expect_refused_line(worker, to, static_cast<int64_t>(line));
      EXPECT_EQ(worker.rpc_sync(to, &words_there, LineTensors{at::ones({2})}), "");
    }
  }));
  torch::autograd::forward_ad::exit_dual_level(level);
}

}  // namespace
}  // namespace rehearsal::reference::carried_by_tensors_test
