#include "core/rpc/value.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <array>
#include <bit>
#include <cstring>

#include "core/base/frame.h"

namespace rehearsal {
namespace {

constexpr int kDepthMax = 64;
constexpr const char* kEndsTooEarly = "the values end too early";

enum class Tag : uint8_t {
  none,
  tensor,
  integer,
  floating,
  boolean,
  text,
  tuple,
  list,
  int_list,
  floating_list,
  bool_list,
  tensor_list,
  dict,
  scalar_complex,
  end_of_tags
};

std::string why_not_sendable(const at::Tensor& tensor) {
  if (tensor.layout() != c10::kStrided) return "sparse tensors cannot be sent yet";
  if (tensor.is_quantized()) return "quantized tensors cannot be sent yet";
  if (!tensor.device().is_cpu())
    return "a tensor on " + tensor.device().str() + " cannot be sent yet: move it to the CPU";
  if (!tensor_bytes(tensor.sizes(), tensor.element_size()))
    return "a tensor of more than 64 dimensions or 2^40 bytes cannot be sent";
  return {};
}

// What the envelope holds for each tensor and reference, at most.
constexpr uint64_t kTensorEntryBytes = 64;
constexpr uint64_t kDimensionBytes = 10;
constexpr uint64_t kForkEntryBytes = 128;
constexpr uint64_t kOtherEntriesBytes = 1 << 20;

}  // namespace

void ValueWriter::count(uint64_t number) {
  std::array<char, 10> bytes;
  size_t used = 0;
  for (; number >= 0x80; number >>= 7) bytes[used++] = static_cast<char>(number | 0x80);
  bytes[used++] = static_cast<char>(number);
  payload_.values.append(bytes.data(), used);
}

void ValueWriter::integer(int64_t number) {
  count((static_cast<uint64_t>(number) << 1) ^ static_cast<uint64_t>(number >> 63));
}

void ValueWriter::floating(double number) {
  const auto bytes = std::bit_cast<std::array<char, sizeof number>>(number);
  payload_.values.append(bytes.data(), bytes.size());
}

void ValueWriter::text(std::string_view bytes) {
  count(bytes.size());
  payload_.values.append(bytes);
}

void ValueWriter::tensor(const at::Tensor& tensor) {
  if (tensor.defined())
    if (std::string why = why_not_sendable(tensor); !why.empty()) throw BadValue(why);
  count(0);
  payload_.tensors.push_back(tensor);
}

void ValueWriter::handle(std::shared_ptr<RRefHandle> handle) {
  count(0);
  payload_.handles.push_back(std::move(handle));
}

void ValueWriter::ivalue(const c10::IValue& value) { ivalue(value, 0); }

void ValueWriter::ivalue(const c10::IValue& value, int depth) {
  if (depth > kDepthMax) throw BadValue("an IValue nested too deeply");
  const auto tag = [this](Tag tag) { count(static_cast<uint64_t>(tag)); };
  const auto sequence = [&](Tag which, const auto& list, auto write) {
    tag(which);
    count(list.size());
    for (const auto& element : list) write(element);
  };
  if (value.isNone()) {
    tag(Tag::none);
  } else if (value.isTensor()) {
    tag(Tag::tensor);
    tensor(value.toTensor());
  } else if (value.isInt()) {
    tag(Tag::integer);
    integer(value.toInt());
  } else if (value.isDouble()) {
    tag(Tag::floating);
    floating(value.toDouble());
  } else if (value.isComplexDouble()) {
    tag(Tag::scalar_complex);
    floating(value.toComplexDouble().real());
    floating(value.toComplexDouble().imag());
  } else if (value.isBool()) {
    tag(Tag::boolean);
    count(value.toBool() ? 1 : 0);
  } else if (value.isString()) {
    tag(Tag::text);
    text(value.toStringRef());
  } else if (value.isTuple()) {
    sequence(Tag::tuple, value.toTupleRef().elements(),
             [&](const c10::IValue& element) { ivalue(element, depth + 1); });
  } else if (value.isIntList()) {
    sequence(Tag::int_list, value.toIntVector(), [&](int64_t element) { integer(element); });
  } else if (value.isDoubleList()) {
    sequence(Tag::floating_list, value.toDoubleVector(),
             [&](double element) { floating(element); });
  } else if (value.isBoolList()) {
    sequence(Tag::bool_list, value.toBoolList().vec(), [&](bool element) { count(element); });
  } else if (value.isTensorList()) {
    sequence(Tag::tensor_list, value.toTensorVector(),
             [&](const at::Tensor& element) { tensor(element); });
  } else if (value.isList()) {
    sequence(Tag::list, value.toListRef(),
             [&](const c10::IValue& element) { ivalue(element, depth + 1); });
  } else if (value.isGenericDict()) {
    const auto dict = value.toGenericDict();
    tag(Tag::dict);
    count(dict.size());
    for (const auto& entry : dict) {  // Insertion order.
      ivalue(entry.key(), depth + 1);
      ivalue(entry.value(), depth + 1);
    }
  } else {
    throw BadValue("an IValue of kind " + value.tagKind() + " cannot be sent");
  }
}

void ValueWriter::finish() const {
  uint64_t bytes = payload_.values.size() + payload_.handles.size() * kForkEntryBytes;
  for (const at::Tensor& tensor : payload_.tensors)
    bytes += kTensorEntryBytes + (tensor.defined() ? tensor.dim() * kDimensionBytes : 0);
  if (bytes > kEnvelopeBytesMax - kOtherEntriesBytes || payload_.tensors.size() > kSegmentCountMax)
    throw BadValue("too much for one message: " + std::to_string(bytes) + " bytes beside " +
                   std::to_string(payload_.tensors.size()) +
                   " tensors; large data travels in tensors");
}

std::string_view ValueReader::take(uint64_t bytes) {
  if (bytes > payload_.values.size() - at_) throw BadValue(kEndsTooEarly);
  const std::string_view taken = std::string_view(payload_.values).substr(at_, bytes);
  at_ += bytes;
  return taken;
}

uint64_t ValueReader::count() {
  const std::string& values = payload_.values;
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == values.size()) throw BadValue(kEndsTooEarly);
    const auto byte = static_cast<uint8_t>(values[at_++]);
    if (shift == 63 && byte > 1) break;
    number |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return number;
  }
  throw BadValue("a number longer than 64 bits");
}

uint64_t ValueReader::element_count() {
  const uint64_t number = count();
  if (number > payload_.values.size() - at_) throw BadValue("more elements than bytes");
  return number;
}

int64_t ValueReader::integer() {
  const uint64_t zigzag = count();
  return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}

double ValueReader::floating() {
  double number;
  std::memcpy(&number, take(sizeof number).data(), sizeof number);
  return number;
}

std::string ValueReader::text() { return std::string(take(count())); }

at::Tensor ValueReader::tensor() {
  if (count() != 0) throw BadValue("not a tensor");
  if (next_tensor_ >= payload_.tensors.size()) throw BadValue("fewer tensors than named");
  return std::move(payload_.tensors[next_tensor_++]);
}

std::shared_ptr<RRefHandle> ValueReader::handle() {
  if (count() != 0) throw BadValue("not a remote reference");
  if (next_handle_ >= payload_.handles.size()) throw BadValue("fewer references than named");
  return std::move(payload_.handles[next_handle_++]);
}

void ValueReader::finish() const {
  if (at_ != payload_.values.size()) throw BadValue("more values than the signature has");
  if (next_tensor_ != payload_.tensors.size()) throw BadValue("more tensors than named");
  if (next_handle_ != payload_.handles.size()) throw BadValue("more references than named");
}

c10::IValue ValueReader::ivalue(int depth) {
  if (depth > kDepthMax) throw BadValue("an IValue nested too deeply");
  const auto fill = [this](auto list, auto read) {
    for (uint64_t left = element_count(); left > 0; --left) list.push_back(read());
    return c10::IValue(std::move(list));
  };
  switch (static_cast<Tag>(count())) {
    case Tag::none:
      return {};
    case Tag::tensor:
      return tensor();
    case Tag::integer:
      return integer();
    case Tag::floating:
      return floating();
    case Tag::scalar_complex: {
      const double first = floating();
      return c10::complex<double>(first, floating());
    }
    case Tag::boolean:
      return count() != 0;
    case Tag::text:
      return text();
    case Tag::tuple: {
      std::vector<c10::IValue> elements;
      for (uint64_t left = element_count(); left > 0; --left) elements.push_back(ivalue(depth + 1));
      return c10::ivalue::Tuple::create(std::move(elements));
    }
    case Tag::int_list:
      return fill(c10::List<int64_t>(), [&] { return integer(); });
    case Tag::floating_list:
      return fill(c10::List<double>(), [&] { return floating(); });
    case Tag::bool_list:
      return fill(c10::List<bool>(), [&] { return count() != 0; });
    case Tag::tensor_list:
      return fill(c10::List<at::Tensor>(), [&] { return tensor(); });
    case Tag::list:
      return fill(c10::impl::GenericList(c10::AnyType::get()), [&] { return ivalue(depth + 1); });
    case Tag::dict: {
      c10::impl::GenericDict dict(c10::AnyType::get(), c10::AnyType::get());
      for (uint64_t left = element_count(); left > 0; --left) {
        c10::IValue key = ivalue(depth + 1);
        if (!key.isInt() && !key.isString() && !key.isDouble() && !key.isBool())
          throw BadValue("a dictionary key that is no number or text");
        dict.insert(std::move(key), ivalue(depth + 1));
      }
      return dict;
    }
    case Tag::end_of_tags:
      break;
  }
  throw BadValue("an unknown kind of IValue");
}

}  // namespace rehearsal
