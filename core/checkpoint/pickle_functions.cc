#include "core/checkpoint/pickle_functions.h"

#include <c10/core/Layout.h>
#include <c10/core/QScheme.h>
#include <c10/util/Exception.h>
#include <c10/util/complex.h>
#include <c10/util/hash.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <string>

#include "core/values/payload.h"

namespace rehearsal {
namespace {

using Kind = PickleValue::Kind;

enum Named : int64_t {
  kTensor,
  kQuantizedTensor,
  kSparseTensor,
  kHooks,
  kComplex,
  kDevice,
  kTyped,
  kWholeList,
  kFloatingList,
  kTruthList,
  kTensorList,
  kTypes = 0x100,    // and the number of a type of elements
  kSchemes = 0x200,  // and that of a scheme of quantized ones
};

struct Name {
  std::string_view module;
  std::string_view name;
  Named named;
};

constexpr Name kNames[] = {{"torch._utils", "_rebuild_tensor_v2", kTensor},
                           {"torch._utils", "_rebuild_qtensor", kQuantizedTensor},
                           {"torch._utils", "_rebuild_sparse_tensor", kSparseTensor},
                           {"collections", "OrderedDict", kHooks},
                           {"builtins", "complex", kComplex},
                           {"torch", "device", kDevice},
                           {"torch.jit._pickle", "restore_type_tag", kTyped},
                           {"torch.jit._pickle", "build_intlist", kWholeList},
                           {"torch.jit._pickle", "build_doublelist", kFloatingList},
                           {"torch.jit._pickle", "build_boollist", kTruthList},
                           {"torch.jit._pickle", "build_tensorlist", kTensorList}};

constexpr int kTypeDepthMax = 64;
constexpr size_t kTypeBytesMax = 4096;
constexpr uint64_t kTooMany = UINT64_MAX;

bool is_one_of_a_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 100 && std::ranges::all_of(text, is_one_of_a_word);
}

// Nothing of a file goes into an error but names that are harmless to show.
[[noreturn]] void refuse_name(std::string_view module, std::string_view name) {
  if (is_word(module) && is_word(name))
    TORCH_CHECK(false, "it names ", module, ".", name, ", which no checkpoint of ours names");
  TORCH_CHECK(false, "it names what no checkpoint of ours names");
}

void need(bool holds, const char* what) { TORCH_CHECK(holds, "it has ", what, " that cannot be"); }

// Takes a type off the front, as LibTorch writes one: Dict[str, List[int]]. Its reader of types
// takes a stack as deep as the text is nested, and knows more than types.
bool take_type(std::string_view& text, int depth) {
  if (depth == 0) return false;
  if (text.starts_with("()")) {  // in Tuple[()]
    text.remove_prefix(2);
    return true;
  }
  const auto word = std::ranges::find_if_not(text, is_one_of_a_word);
  if (word == text.begin()) return false;
  text.remove_prefix(word - text.begin());
  if (!text.starts_with('[')) return true;
  do {
    text.remove_prefix(text.starts_with('[') ? 1 : 2);
    if (!take_type(text, depth - 1)) return false;
  } while (text.starts_with(", "));
  if (!text.starts_with(']')) return false;
  text.remove_prefix(1);
  return true;
}

bool is_type(std::string_view text) {
  return text.size() <= kTypeBytesMax && take_type(text, kTypeDepthMax) && text.empty();
}

// How many bytes of its storage a tensor reaches.
uint64_t reach_of(int64_t offset, std::span<const int64_t> sizes, std::span<const int64_t> strides,
                  uint64_t element_bytes) {
  if (offset < 0) return kTooMany;
  auto end = static_cast<uint64_t>(offset) + 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    uint64_t far = 0;
    if (sizes[i] < 0 || strides[i] < 0) return kTooMany;
    if (sizes[i] == 0) return 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(sizes[i] - 1),
                               static_cast<uint64_t>(strides[i]), &far) ||
        __builtin_add_overflow(end, far, &end))
      return kTooMany;
  }
  uint64_t bytes = 0;
  return __builtin_mul_overflow(end, element_bytes, &bytes) ? kTooMany : bytes;
}

// How many bytes it has if each element has its own.
uint64_t bytes_of(std::span<const int64_t> sizes, uint64_t element_bytes) {
  uint64_t bytes = element_bytes;
  for (const int64_t size : sizes)
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes))
      return kTooMany;
  return bytes;
}

PickleValue typed_list(std::span<const PickleValue> given, Kind kind) {
  need(given.size() == 1 && given[0].kind == Kind::list && has_only(given[0].count, kind),
       "a list of one type");
  return given[0];
}

PickleValue complex_of(std::span<const PickleValue> given) {
  need(given.size() == 2 && given[0].kind == Kind::floating && given[1].kind == Kind::floating,
       "a complex number");
  const c10::complex<double> number(std::bit_cast<double>(given[0].number),
                                    std::bit_cast<double>(given[1].number));
  const size_t hash = c10::hash<c10::complex<double>>()(number);
  return {.kind = Kind::complex, .number = static_cast<int64_t>(hash)};
}

}  // namespace

PickleValue PickleFunctions::function(std::string_view module, std::string_view name) {
  PickleValue made{.kind = Kind::function, .internal = true};
  const auto known = std::ranges::find_if(
      kNames, [&](const Name& known) { return known.module == module && known.name == name; });
  if (known != std::end(kNames)) {
    made.number = known->named;
    return made;
  }
  if (module != "torch") refuse_name(module, name);
  constexpr std::string_view kStorage = "Storage";
  for (int type = 0; type < static_cast<int>(c10::ScalarType::Undefined); ++type) {
    const std::string_view called = c10::toString(static_cast<c10::ScalarType>(type));
    if (name.size() != called.size() + kStorage.size() || !name.starts_with(called) ||
        !name.ends_with(kStorage))
      continue;
    made.number = kTypes + type;
    return made;
  }
  for (int scheme = 0; scheme < c10::COMPILE_TIME_NUM_QSCHEMES; ++scheme) {
    if (name != c10::toString(static_cast<c10::QScheme>(scheme))) continue;
    made.number = kSchemes + scheme;
    return made;
  }
  refuse_name(module, name);
}

PickleValue PickleFunctions::call(const PickleValue& function, const PickleValue& arguments) const {
  need(function.kind == Kind::function && arguments.kind == Kind::tuple, "a call");
  const Arguments given = heap_.elements_of(arguments);
  switch (function.number) {
    case kTensor:
      return tensor(given, false);
    case kQuantizedTensor:
      return tensor(given, true);
    case kSparseTensor:
      return sparse_tensor(given);
    case kHooks:
      need(given.empty(), "a tensor with hooks");
      return {};
    case kComplex:
      return complex_of(given);
    case kDevice:
      return device(given);
    case kTyped:
      return with_type(given);
    case kWholeList:
      return typed_list(given, Kind::whole);
    case kFloatingList:
      return typed_list(given, Kind::floating);
    case kTruthList:
      return typed_list(given, Kind::truth);
    case kTensorList: {
      need(given.size() == 1 && given[0].kind == Kind::list, "a list of tensors");
      need((given[0].count & ~(as_set(Kind::tensor) | as_set(Kind::composite))) == 0,
           "a list of tensors");
      return given[0];
    }
    default:
      need(false, "a call");
      return {};
  }
}

PickleValue PickleFunctions::storage(const PickleValue& description) {
  need(description.kind == Kind::tuple && description.count == 5, "a storage");
  const Arguments given = heap_.elements_of(description);
  need(given[0].kind == Kind::text && heap_.text(given[0]) == "storage" &&
           given[1].kind == Kind::function && given[1].number >= kTypes &&
           given[1].number < kSchemes && given[2].kind == Kind::text &&
           given[3].kind == Kind::text && given[4].kind == Kind::whole && given[4].number >= 0,
       "a storage");
  TORCH_CHECK(heap_.text(given[3]) == "cpu", "a tensor is not on the CPU: copy it there first");
  const std::string_view record = heap_.text(given[2]);
  Storage made{.type = static_cast<c10::ScalarType>(given[1].number - kTypes)};
  if (given[4].number > 0) {
    const auto found = records_.find("data/" + std::string(record));
    TORCH_CHECK(found != records_.end(), "a tensor's record is not there");
    TORCH_CHECK(taken_.insert(record).second, "two storages have one record");
    const bool fits = !__builtin_mul_overflow(static_cast<uint64_t>(given[4].number),
                                              c10::elementSize(made.type), &made.bytes) &&
                      made.bytes <= found->second.size();
    TORCH_CHECK(fits, "a storage is larger than its record");
  }
  storages_.push_back(made);
  return {.kind = Kind::storage,
          .internal = true,
          .number = static_cast<int64_t>(storages_.size() - 1)};
}

// The arguments are: storage, offset, sizes, strides, the scheme of a quantized one, whether it
// requires gradients, its hooks, and perhaps whether its elements are conjugated or negated.
PickleValue PickleFunctions::tensor(Arguments given, bool is_quantized) const {
  const size_t flag = is_quantized ? 5 : 4;
  const bool has_bits = !is_quantized && given.size() == flag + 3;
  need(given.size() == flag + 2 || has_bits, "a tensor");
  need(given[0].kind == Kind::storage && given[1].kind == Kind::whole &&
           given[flag].kind == Kind::truth && given[flag + 1].kind == Kind::nothing,
       "a tensor");
  if (has_bits)
    need(given.back().kind == Kind::dictionary &&
             has_only(given.back().count & ((1U << kValuesShift) - 1), Kind::text) &&
             has_only(given.back().count >> kValuesShift, Kind::truth),
         "a tensor");
  const Storage& storage = storages_[given[0].number];
  need(c10::isQIntType(storage.type) == is_quantized, "a quantized tensor");
  const std::vector<int64_t> sizes = numbers_in(given[2]);
  const std::vector<int64_t> strides = numbers_in(given[3]);
  need(sizes.size() == strides.size(), "a tensor");
  const uint64_t element_bytes = c10::elementSize(storage.type);
  TORCH_CHECK(reach_of(given[1].number, sizes, strides, element_bytes) <= storage.bytes,
              "a tensor is larger than its record");
  if (is_quantized) check_quantizer(given[4], sizes);
  return {.kind = is_quantized ? Kind::composite : Kind::tensor,
          .count = given[2].count,
          .number = given[2].number,
          .bytes = bytes_of(sizes, element_bytes)};
}

void PickleFunctions::check_quantizer(const PickleValue& given,
                                      std::span<const int64_t> sizes) const {
  need(given.kind == Kind::tuple && given.count >= 1, "a quantized tensor");
  const Arguments parts = heap_.elements_of(given);
  need(parts[0].kind == Kind::function && parts[0].number >= kSchemes, "a quantized tensor");
  const auto scheme = static_cast<c10::QScheme>(parts[0].number - kSchemes);
  if (scheme == c10::kPerTensorAffine) {
    need(parts.size() == 3 && parts[1].kind == Kind::floating && parts[2].kind == Kind::whole,
         "a quantized tensor");
    return;
  }
  need(scheme == c10::kPerChannelAffine || scheme == c10::kPerChannelAffineFloatQParams,
       "a quantized tensor");
  need(parts.size() == 4 && parts[3].kind == Kind::whole && parts[3].number >= 0 &&
           static_cast<uint64_t>(parts[3].number) < sizes.size(),
       "a quantized tensor");
  for (const PickleValue& of_channels : parts.subspan(1, 2)) {
    need(of_channels.kind == Kind::tensor && of_channels.count == 1, "a quantized tensor");
    const int64_t channels = heap_.elements[static_cast<size_t>(of_channels.number)].number;
    need(channels == sizes[static_cast<size_t>(parts[3].number)], "a quantized tensor");
  }
}

// The arguments are: layout, sizes, whether it requires gradients, the tensors in it, its hooks.
PickleValue PickleFunctions::sparse_tensor(Arguments given) const {
  need(given.size() >= 3 && given[0].kind == Kind::whole && given[2].kind == Kind::truth,
       "a sparse tensor");
  const int64_t layout = given[0].number;
  const bool is_by_coordinates = layout == static_cast<int64_t>(c10::kSparse);
  need(is_by_coordinates || layout == static_cast<int64_t>(c10::kSparseCsr), "a sparse tensor");
  const size_t tensors = is_by_coordinates ? 2 : 3;
  need(given.size() == 3 + tensors + 1 && given.back().kind == Kind::nothing, "a sparse tensor");
  need(bytes_of(numbers_in(given[1]), sizeof(double)) <= INT64_MAX, "a sparse tensor");
  PickleValue made{.kind = Kind::composite};
  for (const PickleValue& part : given.subspan(3, tensors)) {
    need(part.kind == Kind::tensor, "a sparse tensor");
    made.visits += part.visits;
    made.bytes += part.bytes;
  }
  return made;
}

PickleValue PickleFunctions::with_type(Arguments given) const {
  need(given.size() == 2 && (given[0].kind == Kind::list || given[0].kind == Kind::dictionary) &&
           given[1].kind == Kind::text && is_type(heap_.text(given[1])),
       "a type");
  return given[0];
}

PickleValue PickleFunctions::device(Arguments given) const {
  constexpr size_t kBytesMax = 32;
  need(given.size() == 1 && given[0].kind == Kind::text && given[0].count <= kBytesMax, "a device");
  const bool can_be = std::ranges::all_of(heap_.text(given[0]),
                                          [](char c) { return is_one_of_a_word(c) || c == ':'; });
  need(can_be, "a device");
  return {.kind = Kind::device};
}

std::vector<int64_t> PickleFunctions::numbers_in(const PickleValue& tuple) const {
  need(tuple.kind == Kind::tuple && tuple.count <= kDimensionsMax, "a tensor");
  std::vector<int64_t> numbers;
  for (const PickleValue& element : heap_.elements_of(tuple)) {
    need(element.kind == Kind::whole, "a tensor");
    numbers.push_back(element.number);
  }
  return numbers;
}

}  // namespace rehearsal
