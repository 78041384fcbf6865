#include "core/api/note.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

#include <utility>

#include "core/api/caller.h"
#include "core/base/hash.h"

namespace rehearsal {
namespace {

constexpr size_t kNoteBytesMax = 1000;
constexpr int64_t kNotedNumbers = 16;  // of a tensor

void cut(std::string& text) {
  if (text.size() <= kNoteBytesMax) return;
  size_t end = kNoteBytesMax;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0U) == 0x80U) --end;
  text.resize(end);
  text += "…";
}

NoteValue value_of(const c10::Scalar& number) {
  if (number.isBoolean()) return note_value(number.toBool());
  if (number.isIntegral(false)) return note_value(number.toLong());
  if (number.isFloatingPoint()) return note_value(number.toDouble());
  const c10::complex<double> complex = number.toComplexDouble();
  return {"(" + note_value(complex.real()).text + ", " + note_value(complex.imag()).text + ")"};
}

}  // namespace

NoteValue note_value(const at::Tensor& tensor) {
  if (!tensor.defined()) return {"undefined"};
  const at::NoGradGuard no_grad;
  const bool has_numbers =
      tensor.layout() == at::kStrided && !tensor.is_meta() && tensor.numel() <= kNotedNumbers;
  if (has_numbers && tensor.numel() == 1) return value_of(tensor.item());
  std::string text = c10::toString(tensor.scalar_type());
  text += note_value(tensor.sizes()).text;
  if (!has_numbers) return {std::move(text)};
  const at::Tensor flat = tensor.flatten();
  std::string numbers;
  for (int64_t i = 0; i < flat.numel(); ++i)
    numbers += (i > 0 ? ", " : "") + value_of(flat[i].item()).text;
  return {text + " {" + numbers + "}"};
}

void add_note(const Caller& caller, std::string_view name, NoteValue value) {
  const std::shared_ptr<NodeStrand>& strand = caller.strand();
  const Execution* const running = strand->running_or_null();
  Event event{.kind = EventKind::note,
              .worker = strand->self(),
              .id = running != nullptr ? running->started_by() : CausalId{},
              .number = value.is_number ? uint64_t{1} : uint64_t{0},
              .digest = hash_text(value.text)};
  std::string short_name(name);
  cut(short_name);
  cut(value.text);
  strand->post(
      [strand, event, name = std::move(short_name), text = std::move(value.text)]() mutable {
        event.text = name;
        event.value = text;
        strand->trace().on_event(event);
      });
}

}  // namespace rehearsal
