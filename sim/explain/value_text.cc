#include "sim/explain/value_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <sstream>
#include <vector>

#include "core/functions/schema_arguments.h"
#include "core/values/value.h"

namespace rehearsal::sim {
namespace {

constexpr size_t kElementsShown = 4;
constexpr size_t kLettersShown = 40;
// Values with more bytes than this are not looked at: a history is written while the run waits.
constexpr size_t kBytesRead = 4096;
constexpr const char* kMore = "…";

template <class Number>
std::string number_text(Number number) {
  std::array<char, 64> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return {digits.data(), end};
}

// In quotes; what is no letter is a dot.
std::string in_quotes(std::string_view text) {
  std::string shown = "\"";
  for (const char letter : text.substr(0, kLettersShown))
    shown += static_cast<unsigned char>(letter) < ' ' || letter == '\x7f' ? '.' : letter;
  return shown + "\"" + (text.size() > kLettersShown ? kMore : "");
}

template <class T>
std::string element_at(const at::Tensor& tensor, int64_t place) {
  const T value = static_cast<const T*>(tensor.const_data_ptr())[place];
  if constexpr (std::is_same_v<T, bool>)
    return value ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return number_text(static_cast<int64_t>(value));
  else if constexpr (std::is_same_v<T, double>)
    return number_text(value);
  else
    return number_text(static_cast<float>(value));
}

using ElementText = std::string (*)(const at::Tensor&, int64_t);

ElementText reader_of(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return element_at<float>;
    case at::kDouble:
      return element_at<double>;
    case at::kLong:
      return element_at<int64_t>;
    case at::kInt:
      return element_at<int32_t>;
    case at::kShort:
      return element_at<int16_t>;
    case at::kChar:
      return element_at<int8_t>;
    case at::kByte:
      return element_at<uint8_t>;
    case at::kBool:
      return element_at<bool>;
    case at::kHalf:
      return element_at<at::Half>;
    case at::kBFloat16:
      return element_at<at::BFloat16>;
    default:
      return nullptr;
  }
}

// Reads memory as it lies: no operator of LibTorch runs, which could be seen by the program.
std::string elements_text(const at::Tensor& tensor) {
  const bool is_plain = tensor.layout() == at::kStrided && tensor.device().is_cpu() &&
                        !tensor.is_conj() && !tensor.is_neg() && tensor.has_storage() &&
                        tensor.is_contiguous();
  const ElementText element = is_plain ? reader_of(tensor.scalar_type()) : nullptr;
  if (element == nullptr || tensor.numel() == 0) return {};
  std::string text = "{";
  const int64_t shown = std::min<int64_t>(tensor.numel(), kElementsShown);
  for (int64_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + element(tensor, i);
  return text + (shown < tensor.numel() ? std::string(", ") + kMore : "") + "}";
}

std::string fork_text(const Fork& fork) {
  std::ostringstream out;
  out << "fork " << fork.id << " of " << fork.rref;
  return out.str();
}

// A type whose values only the program can read.
struct Unreadable {};

// Goes along a wire signature and the values that it describes.
class Telling {
 public:
  Telling(const Payload& payload, std::string_view signature)
      : payload_(payload), forks_(payload.forks), reader_(prepared(payload_)), rest_(signature) {}

  // Values, each with a comma behind its type, to the end of the signature.
  std::string all() {
    std::string text;
    try {
      while (!rest_.empty()) {
        add(text, one());
        skip(',');
      }
    } catch (const Unreadable&) {
      add(text, kMore);
    } catch (const BadValue&) {
      add(text, kMore);
    }
    while (next_fork_ < forks_.size()) add(text, fork_text(forks_[next_fork_++]));
    return text;
  }

 private:
  static void add(std::string& text, const std::string& value) {
    text += (text.empty() ? "" : ", ") + value;
  }

  // References come as forks; the reader counts handles.
  static Payload& prepared(Payload& payload) {
    payload.handles.resize(payload.forks.size());
    payload.devices = nullptr;  // Of a lent one its sizes are told.
    return payload;
  }

  bool skip(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool skip(char letter) { return skip(std::string_view(&letter, 1)); }
  void expect(char letter) {
    if (!skip(letter)) throw Unreadable{};
  }

  // The type that comes next is passed over: there is no value of it.
  void pass_over() {
    int depth = 0;
    while (!rest_.empty()) {
      const char letter = rest_.front();
      const bool closes = std::string_view("])}>").find(letter) != std::string_view::npos;
      if (depth == 0 && (closes || std::string_view(",:*").find(letter) != std::string_view::npos))
        return;
      if (closes) --depth;
      if (std::string_view("[({<").find(letter) != std::string_view::npos) ++depth;
      rest_.remove_prefix(1);
    }
  }

  std::string one() {
    if (skip("bool")) return reader_.boolean() ? "true" : "false";
    if (skip("int")) return take_width(), number_text(reader_.integer());
    if (skip("uint")) return take_width(), number_text(reader_.unsigned_integer());
    if (skip("float64")) return number_text(reader_.floating());
    if (skip("float") || skip("bfloat"))
      return take_width(), number_text(static_cast<float>(reader_.floating()));
    if (skip("duration")) return duration();
    if (skip("bytes")) return in_quotes(reader_.text());
    if (skip("unit")) return reader_.count(), "";
    if (skip("Tensor")) return tensor_text(reader_.tensor());
    if (skip("IValue")) return ivalue_text(reader_.ivalue());
    if (rest_.starts_with("rref<")) return reference();
    if (skip('?')) return maybe();
    if (skip('[')) return sequence();
    if (skip('{')) return dictionary();
    if (skip('(')) return reader_.count(), fields("(");
    if (skip('<')) return pair();
    if (skip("struct(")) return structure();
    throw Unreadable{};
  }

  void take_width() {
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0)
      rest_.remove_prefix(1);
  }

  std::string duration() {
    const auto length = Value<std::chrono::nanoseconds>::read(reader_);
    return number_text(static_cast<double>(length.count()) / 1e9) + " s";
  }

  std::string reference() {
    pass_over();
    static_cast<void>(reader_.handle());
    return next_fork_ < forks_.size() ? fork_text(forks_[next_fork_++]) : "a reference";
  }

  std::string maybe() {
    if (reader_.boolean()) return one();
    pass_over();
    return "none";
  }

  // `count` values of the type that comes next, of which some are shown.
  std::string repeated(uint64_t count) {
    const std::string_view type = rest_;
    std::string text;
    for (uint64_t i = 0; i < count; ++i) {
      rest_ = type;
      std::string value = element();
      if (i < kElementsShown) text += (i == 0 ? "" : ", ") + std::move(value);
    }
    rest_ = type;
    pass_over();
    if (skip(':')) pass_over();
    return count > kElementsShown ? text + ", " + kMore : text;
  }

  // Of a sequence, a set or a dictionary.
  std::string element() {
    std::string text = one();
    return skip(':') ? text + ": " + one() : text;
  }

  std::string sequence() {
    std::string text = "[" + repeated(reader_.element_count()) + "]";
    if (skip('*')) take_width();  // Its size is fixed.
    expect(']');
    return text;
  }

  std::string dictionary() {
    std::string text = "{" + repeated(reader_.element_count()) + "}";
    expect('}');
    return text;
  }

  std::string fields(const char* open) {
    std::string text = open;
    for (bool is_first = true; !skip(')'); is_first = false) {
      text += is_first ? one() : ", " + one();
      expect(',');
    }
    return text + (*open == '(' ? ")" : "}");
  }

  std::string pair() {
    std::string text = "(" + one();
    expect(',');
    text += ", " + one();
    expect('>');
    return text + ")";
  }

  std::string structure() {
    static_cast<void>(reader_.count());
    return fields("{");
  }

  Payload payload_;
  const std::vector<Fork> forks_;
  size_t next_fork_ = 0;
  ValueReader reader_;
  std::string_view rest_;
};

}  // namespace

std::string tensor_text(const at::Tensor& tensor) {
  if (!tensor.defined()) return "undefined";
  std::string text = c10::toString(tensor.scalar_type());
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  text += "[";
  for (int64_t i = 0; i < tensor.dim(); ++i)
    text += (i == 0 ? "" : ",") + std::to_string(tensor.size(i));
  return text + "]" + (tensor.is_meta() ? " lent" : elements_text(tensor));
}

std::string ivalue_text(const c10::IValue& value) {
  if (value.isTensor()) return tensor_text(value.toTensor());
  if (value.isInt()) return number_text(value.toInt());
  if (value.isDouble()) return number_text(value.toDouble());
  if (value.isBool()) return value.toBool() ? "true" : "false";
  if (value.isString()) return in_quotes(value.toStringRef());
  if (value.isNone()) return "None";
  return value.tagKind();
}

std::string payload_text(const Payload& payload) {
  constexpr size_t kTensorsShown = 8;
  std::ostringstream out;
  const char* separator = "";
  for (size_t i = 0; i < payload.tensors.size() && i < kTensorsShown; ++i, separator = ", ")
    out << separator << tensor_text(payload.tensors[i]);
  if (payload.tensors.size() > kTensorsShown)
    out << " and " << payload.tensors.size() - kTensorsShown << " tensors more";
  for (const Fork& fork : payload.forks) {
    out << separator << fork_text(fork);
    separator = ", ";
  }
  if (payload.tensors.empty() && payload.forks.empty() && !payload.values.empty())
    out << payload.values.size() << " bytes of values";
  return out.str();
}

std::string values_text(const Payload& payload, std::string_view signature) {
  if (payload.values.size() > kBytesRead) return payload_text(payload);
  return Telling(payload, signature).all();
}

std::string schema_values_text(const Payload& payload) {
  if (payload.values.size() > kBytesRead) return payload_text(payload);
  Payload copy = payload;
  copy.handles.resize(copy.forks.size());
  copy.devices = nullptr;  // Of a lent one its sizes are told.
  std::string text;
  try {
    ValueReader reader(copy);
    const auto arguments = Value<SchemaArguments>::read(reader);
    for (const c10::IValue& value : arguments.positional)
      text += (text.empty() ? "" : ", ") + ivalue_text(value);
    for (const auto& [name, value] : arguments.keywords)
      text += (text.empty() ? "" : ", ") + name + "=" + ivalue_text(value);
  } catch (const BadValue&) {
    return payload_text(payload);
  }
  return text;
}

}  // namespace rehearsal::sim
