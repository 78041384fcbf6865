#include "core/values/sent_tensor.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/values/value_io.h"

namespace rehearsal {
namespace {

// Tensors up to this size are copied, so that nothing that the user does to them later can reach
// the wire.
constexpr uint64_t kCopiedBytesMax = 16 * 1024;

// Whether a tensor's elements lie in memory as they are sent, and are to be copied.
bool can_be_copied(const at::Tensor& tensor) {
  return tensor.nbytes() <= kCopiedBytesMax && tensor.device().is_cpu() && tensor.is_contiguous() &&
         !tensor.is_conj() && !tensor.is_neg() && !tensor._is_zerotensor();
}

// By hand: what LibTorch does around a copy costs many times the copy of a small tensor.
Segment copy_of(const at::Tensor& tensor) {
  constexpr std::align_val_t kAlignment{64};
  const uint64_t bytes = tensor.nbytes();
  std::shared_ptr<void> memory(::operator new(bytes, kAlignment),
                               [](void* elements) { ::operator delete(elements, kAlignment); });
  std::memcpy(memory.get(), tensor.const_data_ptr(), bytes);
  auto* const data = static_cast<std::byte*>(memory.get());
  return {.owner = std::move(memory), .data = data, .bytes = bytes};
}

// The memory itself.
Segment shared_with(at::Tensor elements) {
  auto owner = std::make_shared<at::Tensor>(std::move(elements));
  return {
      .owner = owner, .data = static_cast<std::byte*>(owner->data_ptr()), .bytes = owner->nbytes()};
}

Segment segment_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return {};
  if (can_be_copied(tensor)) return copy_of(tensor);
  at::Tensor elements = tensor._is_zerotensor()
                            ? at::zeros(tensor.sizes(), tensor.scalar_type())
                            : tensor.detach().resolve_conj().resolve_neg().contiguous();
  if (elements.nbytes() <= kCopiedBytesMax && elements.is_alias_of(tensor))
    elements = elements.clone();
  return shared_with(std::move(elements));
}

uint32_t version_of(const at::Tensor& tensor) { return static_cast<uint32_t>(tensor._version()); }

// Of the forms that are not dense all that is sent counts as shared.
bool shares_elements(const at::Tensor& tensor, const SentTensor& sent) {
  if (sent.entry.undefined || tensor.is_inference()) return false;
  if (sent.entry.form != TensorForm::dense) return true;
  return sent.elements.bytes > 0 && !tensor._is_zerotensor() &&
         sent.elements.data == static_cast<const std::byte*>(tensor.const_data_ptr());
}

TensorEntry entry_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {.undefined = true};
  return {.dtype = static_cast<uint32_t>(tensor.scalar_type()),
          .requires_grad = tensor.requires_grad(),
          .form = form_of(tensor)};
}

// A receiver breaks with who sends what cannot be: it is refused here.
void check_parts(const at::Tensor& tensor, const SentTensor& sent, std::vector<at::Tensor> parts) {
  if (!put_together({.form = sent.entry.form,
                     .dtype = tensor.scalar_type(),
                     .sizes = sent.sizes,
                     .numbers = sent.numbers,
                     .parts = std::move(parts),
                     .elements = sent.elements}))
    throw BadValue("a tensor whose parts do not fit each other cannot be sent: sizes " +
                   c10::str(tensor.sizes()) + ", layout " + c10::str(tensor.layout()));
}

SentTensor sent_tensor(const at::Tensor& tensor) {
  SentTensor sent;
  sent.entry = entry_of(tensor);
  if (sent.entry.undefined) return sent;
  sent.sizes = c10::DimVector(tensor.sizes());
  if (sent.entry.form == TensorForm::dense) [[likely]] {
    sent.elements = segment_of(tensor);
    return sent;
  }
  TensorContent content = content_of(tensor, sent.entry.form);
  for (const at::Tensor& part : content.parts) sent.parts.push_back(sent_tensor(part));
  sent.elements = segment_of(content.elements);
  sent.numbers = std::move(content.numbers);
  if (has_parts(tensor)) check_parts(tensor, sent, std::move(content.parts));
  return sent;
}

// Its elements come later: nothing may look at them here. Only a device can borrow.
SentTensor sent_from_device(const at::Tensor& tensor, bool to_device, DeviceCopies& copies) {
  if (to_device)
    if (const std::optional<Lent> lent = copies.to_lend(tensor)) return sent_as_loan(tensor, *lent);
  const at::Tensor host = copies.to_host(tensor);
  SentTensor sent;
  sent.entry = entry_of(host);
  sent.entry.requires_grad = tensor.requires_grad();
  sent.sizes = c10::DimVector(host.sizes());
  if (sent.entry.form == TensorForm::dense) {
    if (host.numel() > 0) sent.elements = shared_with(host);
    return sent;
  }
  TensorContent content = content_of(host, sent.entry.form);
  REHEARSAL_CHECK(content.elements.is_contiguous(), host.sizes());
  if (content.elements.numel() > 0) sent.elements = shared_with(std::move(content.elements));
  sent.numbers = std::move(content.numbers);
  return sent;
}

void set_place(SentTensor& sent, TensorPlace place) {
  sent.entry.place = place;
  if (place.to != 0 && !sent.entry.lent) sent.elements.use = SegmentUse::device;
}

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

// Whether elements lie on each other, so that many more are sent than there are in memory.
bool is_expanded(const at::Tensor& tensor) {
  return tensor.layout() == c10::kStrided && tensor.has_storage() &&
         tensor.storage().nbytes() < tensor.nbytes();
}

// For people: the memory that is missing, and the way round it.
std::string why_no_copy(const at::Tensor& tensor, const std::string& cause) {
  std::string why =
      "a tensor of sizes " + c10::str(tensor.sizes()) + " cannot be encoded: " + cause;
  if (is_expanded(tensor))
    why += "; it is expanded, and is sent as " + bytes_text(tensor.nbytes()) +
           ": send what it is expanded from";
  return why;
}

void check_bytes(const std::vector<at::Tensor>& tensors) {
  uint64_t bytes = 0;  // of no tensor more than kSegmentBytesMax
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    bytes += memory_bytes(tensor);
    if (bytes > kSegmentBytesMax - kEnvelopeBytesMax)
      throw BadValue("too much for one message: tensors of more than " +
                     bytes_text(kSegmentBytesMax - kEnvelopeBytesMax));
  }
}

}  // namespace

bool CarriedTensor::has_changed() const { return version && version_of(tensor) != *version; }

SentTensor sent_as_loan(const at::Tensor& tensor, const Lent& lent) {
  SentTensor sent;
  sent.entry = entry_of(tensor);
  sent.entry.lent = true;
  sent.sizes = c10::DimVector(tensor.sizes());
  auto bytes = std::make_shared<std::string>(sizeof lent.loan, '\0');
  std::memcpy(bytes->data(), &lent.loan, sizeof lent.loan);
  bytes->append(lent.ticket);
  sent.elements = {
      .owner = bytes, .data = reinterpret_cast<std::byte*>(bytes->data()), .bytes = bytes->size()};
  return sent;
}

std::vector<SentTensor> sent_tensors(const std::vector<at::Tensor>& tensors,
                                     std::span<const TensorPlace> places, DeviceCopies& copies) {
  std::vector<SentTensor> sent;
  if (tensors.empty()) return sent;
  const at::Tensor* taken = &tensors.front();
  try {
    check_bytes(tensors);
    sent.reserve(tensors.size());
    for (const at::Tensor& tensor : tensors) {
      taken = &tensor;
      const bool on_device = tensor.defined() && !tensor.device().is_cpu();
      const bool to_device = !places.empty() && places[sent.size()].to != 0;
      sent.push_back(on_device ? sent_from_device(tensor, to_device, copies) : sent_tensor(tensor));
      if (!on_device && shares_elements(tensor, sent.back()))
        sent.back().version = version_of(tensor);
      if (!places.empty()) set_place(sent.back(), places[sent.size() - 1]);
    }
  } catch (const c10::Error& error) {
    throw BadValue(why_no_copy(*taken, first_line(error)));
  } catch (const std::bad_alloc&) {
    throw BadValue(why_no_copy(*taken, "there is no memory for it"));
  }
  return sent;
}

uint64_t sent_bytes(const std::vector<SentTensor>& tensors) {
  uint64_t bytes = 0;
  for (const SentTensor& tensor : tensors)
    bytes += tensor.elements.bytes + sent_bytes(tensor.parts);
  return bytes;
}

}  // namespace rehearsal
