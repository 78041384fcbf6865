#include <ATen/Functions.h>
#include <ATen/quantized/Quantizer.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/values/sent_tensor.h"
#include "core/values/tensor_form.h"
#include "core/values/value.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/wire/every_message.h"
#include "tests/fuzz/target.h"

// A frame's body: a message, the values in it, its tensors.
namespace rehearsal::fuzz {
namespace {

// Larger tensors are not computed with: that takes time and says nothing more.
constexpr int64_t kElementsMax = 1 << 16;

Segment segment_of(const std::string& bytes) {
  std::shared_ptr<void> owner(std::aligned_alloc(64, (bytes.size() + 64) / 64 * 64), &std::free);
  std::memcpy(owner.get(), bytes.data(), bytes.size());
  auto* data = static_cast<std::byte*>(owner.get());
  return {std::move(owner), data, bytes.size(), {}};
}

// Looks at every element, as a function that is called does.
void compute_with(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() > kElementsMax) return;
  try {
    if (tensor.is_quantized())
      (void)tensor.dequantize().sum();
    else
      (void)(tensor.layout() == c10::kStrided ? tensor.clone() : tensor.to_dense());
  } catch (const c10::NotImplementedError&) {  // Of elements below a byte LibTorch copies none.
  }
}

// ---- a message -------------------------------------------------------------------

constexpr size_t kSegmentsMax = 64;

// An input: how many segments, the length of each, their bytes, the envelope.
FrameBody body_of(Input& input) {
  FrameBody body;
  std::vector<uint64_t> lengths(input.byte() % kSegmentsMax);
  for (uint64_t& length : lengths) length = input.number(2);
  for (const uint64_t length : lengths) body.segments.push_back(segment_of(input.text(length)));
  body.envelope = input.rest();
  return body;
}

void put_number(std::string& bytes, uint64_t number, size_t length) {
  bytes.append(reinterpret_cast<const char*>(&number), length);
}

std::string input_of(const FrameBody& body) {
  must(body.segments.size() < kSegmentsMax, "an input has room for the segments");
  std::string input;
  put_number(input, body.segments.size(), 1);
  for (const Segment& segment : body.segments) put_number(input, segment.bytes, 2);
  for (const Segment& segment : body.segments)
    input.append(reinterpret_cast<const char*>(segment.data), segment.bytes);
  return input + body.envelope;
}

Payload* payload_of(Message& message) {
  Payload* payload = nullptr;
  std::visit(
      [&payload](auto& content) {
        if constexpr (requires { content.arguments.tensors; })
          payload = &content.arguments;
        else if constexpr (requires { content.gradients.tensors; })
          payload = &content.gradients;
        else if constexpr (requires { content.value.tensors; })
          payload = &content.value;
      },
      message.content);
  return payload;
}

void read_tensors(const Payload& payload) {
  Payload tensors;
  tensors.tensors = payload.tensors;
  tensors.values.assign(payload.tensors.size(), '\0');
  ValueReader reader(tensors);
  for (size_t left = tensors.tensors.size(); left > 0; --left) {
    try {
      compute_with(reader.tensor());
    } catch (const BadValue&) {  // Its contents cannot be.
    }
  }
}

// False where it cannot be sent on: LibTorch copies no elements below a byte.
bool make_ready(Payload& payload) {
  DeviceCopies none;
  try {
    payload.sent = sent_tensors(payload.tensors, payload.places(), none);
  } catch (const c10::NotImplementedError&) {
    return false;
  }
  return true;
}

// A message that was read is written with the same words.
void read_message(Bytes bytes) {
  static const std::unique_ptr<Codec> codec = make_protobuf_codec();
  Input input(bytes);
  Result<Message> decoded = codec->decode(body_of(input));
  if (!decoded.ok()) {
    must(decoded.error().kind == ErrorKind::protocol, "bytes that are no message are of a liar");
    return;
  }
  Message& message = decoded.value();
  must(message.type() != 0, "a message has a kind");
  (void)causal_id_of(message);
  Payload* payload = payload_of(message);
  if (payload != nullptr) {
    read_tensors(*payload);
    if (!make_ready(*payload)) return;
  }
  const auto once = codec->encode(message);
  Result<Message> again = codec->decode(*once);
  must(again.ok(), "a message that was read can be sent: " +
                       (again.ok() ? std::string() : to_string(again.error())));
  if (Payload* second = payload_of(again.value()))
    must(make_ready(*second), "what was sent can be sent on");
  must(codec->encode(again.value())->envelope == once->envelope,
       "a message is read as it was written");
}

std::vector<std::string> first_messages() {
  const std::unique_ptr<Codec> codec = make_protobuf_codec();
  std::vector<std::string> inputs;
  for (const Message& message : every_message())
    inputs.push_back(input_of(*codec->encode(message)));
  return inputs;
}

// ---- values ----------------------------------------------------------------------

struct Leaf {
  std::string text;
  std::vector<int64_t> ids;
  std::optional<double> weight;
  friend void describe(Leaf& leaf, auto&& fields) { fields(leaf.text, leaf.ids, leaf.weight); }
};

struct Tree {
  Leaf leaf;
  std::vector<Tree> branches;
  std::map<std::string, at::Tensor> tensors;
  std::variant<int32_t, std::string, Leaf> either;
  friend void describe(Tree& tree, auto&& fields) {
    fields(tree.leaf, tree.branches, tree.tensors, tree.either);
  }
};

// The tensors that the bytes of a value may name.
std::vector<at::Tensor> some_tensors() {
  return {at::arange(6).reshape({2, 3}), at::Tensor(), at::ones({2}), at::eye(2).to_sparse()};
}

template <class T>
std::string write(const T& value) {
  Payload payload;
  ValueWriter writer(payload);
  Value<T>::write(writer, value);
  writer.finish();
  return payload.values;
}

// A value that was read, written and read again is written with the same bytes.
template <class T>
void read_as(const std::string& values) {
  Payload payload;
  payload.values = values;
  payload.tensors = some_tensors();
  ValueReader reader(payload);
  const T value = Value<T>::read(reader);
  Payload once;
  ValueWriter writer(once);
  Value<T>::write(writer, value);
  writer.finish();
  ValueReader second(once);
  const T again = Value<T>::read(second);
  second.finish();
  Payload twice;
  ValueWriter last(twice);
  Value<T>::write(last, again);
  must(twice.values == once.values, "a value is read as it was written");
}

void read_value(Bytes bytes) {
  using Table = std::unordered_map<int64_t, std::vector<bool>>;
  using Read = void (*)(const std::string&);
  static constexpr Read kReads[] = {&read_as<Tree>,
                                    &read_as<c10::IValue>,
                                    &read_as<c10::impl::GenericDict>,
                                    &read_as<Table>,
                                    &read_as<std::vector<std::pair<std::string, uint8_t>>>,
                                    &read_as<std::vector<std::optional<Unit>>>,
                                    &read_as<at::Tensor>};
  Input input(bytes);
  const uint8_t type = input.byte();
  try {
    kReads[type % std::size(kReads)](input.rest());
  } catch (const BadValue&) {  // It is none.
  }
}

c10::IValue some_ivalue() {
  c10::impl::GenericDict table(c10::StringType::get(), c10::AnyType::get());
  table.insert("number", int64_t{5});
  table.insert("tensor", at::ones({2}));
  table.insert("list", c10::List<double>({1.5, 2.5}));
  return c10::ivalue::Tuple::create({table, c10::IValue(), true, "text"});
}

std::vector<std::string> first_values() {
  const Leaf leaf{"text", {1, -2, 300}, 0.5};
  const Tree inner{leaf, {}, {{"t", at::ones({2})}}, int32_t{7}};
  const std::string tree = write(Tree{leaf, {inner, inner}, {}, std::string("or")});
  return {'\0' + tree, '\1' + write(some_ivalue()),
          '\3' + write(std::unordered_map<int64_t, std::vector<bool>>{{1, {true, false}}}),
          '\4' + write(std::vector<std::pair<std::string, uint8_t>>{{"a", 1}, {"b", 2}}),
          '\5' + write(std::vector<std::optional<Unit>>{Unit{}, std::nullopt})};
}

// ---- a tensor --------------------------------------------------------------------

// An input: form, type, dimensions, numbers, and for each part type, dimensions and bytes.
std::vector<int64_t> numbers_of(Input& input, size_t count) {
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers) {
    const uint8_t how = input.byte();  // mostly small ones, which fit each other more often
    number = how < 0xf0 ? how % 16 : static_cast<int64_t>(input.number());
  }
  return numbers;
}

at::Tensor part_of(Input& input) {
  static constexpr c10::ScalarType kTypes[] = {at::kLong, at::kInt, at::kFloat, at::kDouble};
  const auto options = at::TensorOptions(kTypes[input.byte() % std::size(kTypes)]);
  const std::vector<int64_t> sizes = numbers_of(input, input.byte() % 4);
  int64_t elements = 1;
  for (const int64_t size : sizes) {
    if (size < 0 || size > 64) return at::empty({0}, options);
    elements *= size;
  }
  at::Tensor part = at::zeros(sizes, options);
  const std::string bytes = input.text(static_cast<size_t>(elements) * part.element_size());
  if (!bytes.empty()) std::memcpy(part.mutable_data_ptr(), bytes.data(), bytes.size());
  return part;
}

void read_tensor(Bytes bytes) {
  Input input(bytes);
  ReceivedForm received;
  received.form = static_cast<TensorForm>(1 + input.byte() % static_cast<uint8_t>(kLastTensorForm));
  received.dtype = static_cast<c10::ScalarType>(input.byte() % 24);
  const std::vector<int64_t> sizes = numbers_of(input, input.byte() % 6);
  const FormCounts counts = counts_of(received.form, sizes.size());
  const std::vector<int64_t> numbers = numbers_of(input, counts.numbers);
  received.sizes = sizes;
  received.numbers = numbers;
  for (size_t i = 0; i < counts.parts; ++i) received.parts.push_back(part_of(input));
  // As the reader of frames asks it of each form.
  const std::optional<uint64_t> needed = element_bytes(received);
  if (!needed || *needed > kElementsMax) return;
  if (counts.has_elements) {
    std::string elements = input.text(*needed);
    elements.resize(*needed);
    received.elements = segment_of(elements);
  }
  const std::optional<at::Tensor> tensor = put_together(std::move(received));
  if (!tensor || !why_bad_contents(*tensor).empty()) return;
  compute_with(*tensor);
}

std::vector<std::string> first_tensors() {
  std::vector<std::string> inputs;
  for (char form = 0; form < static_cast<char>(kLastTensorForm); ++form)
    inputs.push_back(form + std::string("\x06\x02\x02\x02") + std::string(400, '\1'));
  return inputs;
}

}  // namespace

std::vector<Target> value_targets() {
  return {{"message", "a frame's body, as any of the messages", &read_message, &first_messages},
          {"value", "a payload's bytes, as values of several types", &read_value, &first_values},
          {"tensor", "sparse, quantised and strided tensors", &read_tensor, &first_tensors}};
}

}  // namespace rehearsal::fuzz
