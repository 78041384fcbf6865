#include "core/values/device_copies.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "core/values/tensor_form.h"
#include "core/values/value_io.h"

namespace rehearsal {

DeviceCopies::~DeviceCopies() {
  for (const LoanId loan : loans_) (void)way_.lending->end(loan);
}

c10::Stream DeviceCopies::copy(const at::Tensor& source, const at::Tensor& memory) {
  memory.copy_(source, /*non_blocking=*/true);
  const c10::Device device = source.device();
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  source.record_stream(stream);  // Its memory may be of another one, as what a state gave away.
  if (std::find(streams_.begin(), streams_.end(), stream) == streams_.end())
    streams_.push_back(stream);
  return stream;
}

namespace {

// A part is no less than this share of a tensor, however large that is: each needs a mark.
constexpr int64_t kMarksMax = 16;

// Whether the elements lie in both in the same order, without gaps.
bool lie_alike(const at::Tensor& source, const at::Tensor& host) {
  return source.is_non_overlapping_and_dense() && source.strides() == host.strides() &&
         !source.is_conj() && !source.is_neg();
}

at::Tensor in_a_row(const at::Tensor& tensor) {
  return tensor.as_strided({tensor.numel()}, {1}, tensor.storage_offset());
}

}  // namespace

void DeviceCopies::copy_in_parts(const at::Tensor& source, const at::Tensor& host) {
  const at::Tensor from = in_a_row(source);
  const at::Tensor to = in_a_row(host);
  const auto element_bytes = static_cast<int64_t>(source.element_size());
  const int64_t elements = source.numel();
  const int64_t step =
      std::max({int64_t{1}, static_cast<int64_t>(way_.copied_at_once) / element_bytes,
                (elements + kMarksMax - 1) / kMarksMax});
  for (int64_t begin = 0; begin < elements; begin += step) {
    const int64_t end = std::min(begin + step, elements);
    const c10::Stream stream =
        copy(from.narrow(0, begin, end - begin), to.narrow(0, begin, end - begin));
    if (end < elements)  // Behind the last one is the mark of all.
      parts_.push_back({.begin = host.const_data_ptr(),
                        .bytes = static_cast<uint64_t>(end * element_bytes),
                        .marks = StreamMarks({stream})});
  }
}

at::Tensor DeviceCopies::to_host(const at::Tensor& tensor) {
  const at::NoGradGuard no_grad;
  const at::Tensor source = tensor.detach();
  const at::Tensor host =
      at::empty_like(source, source.options().device(at::kCPU).pinned_memory(true));
  if (source.nbytes() > way_.copied_at_once && !has_parts(tensor) && lie_alike(source, host))
    copy_in_parts(source, host);
  else
    copy(source, host);
  return host;
}

std::optional<Lent> DeviceCopies::to_lend(const at::Tensor& tensor) {
  const bool is_lent = way_.lending != nullptr && form_of(tensor) == TensorForm::dense &&
                       tensor.numel() > 0 && way_.lending->lends(way_.borrower, tensor.nbytes());
  if (!is_lent) return std::nullopt;
  const at::NoGradGuard no_grad;
  const at::Tensor source = tensor.detach();
  const at::Tensor there = at::empty(source.sizes(), source.options());
  copy(source, there);
  std::optional<Lent> lent = way_.lending->lend(way_.borrower, there);
  if (!lent) return std::nullopt;
  REHEARSAL_CHECK(lent->ticket.size() <= kTicketBytesMax, lent->ticket.size());
  loans_.push_back(lent->loan);
  return lent;
}

bool DeviceCopies::close() {
  if (streams_.size() != 1 || !loans_.empty()) parts_.clear();
  if (!streams_.empty()) marks_ = std::make_shared<const StreamMarks>(streams_);
  return marks_ != nullptr;
}

bool DeviceCopies::done() {
  if (marks_ == nullptr) return true;
  try {
    look_at_parts(parts_.size());
    if (copied_ < parts_.size() || !marks_->reached()) return false;
  } catch (const c10::Error& error) {
    failure_ = first_line(error);
  }
  end();
  return true;
}

// It leaves as soon as it can: no more is asked.
bool DeviceCopies::begun() {
  if (parts_.empty()) return done();
  try {
    look_at_parts(1);
    return copied_ > 0;
  } catch (const c10::Error& error) {
    failure_ = first_line(error);
  }
  end();
  return true;
}

void DeviceCopies::end() {
  marks_.reset();
  parts_.clear();
  copied_ = 0;
  if (filled_ && !failure_) *filled_ = UINT64_MAX;
}

void DeviceCopies::look_at_parts(size_t first) {
  while (copied_ < first && parts_[copied_].marks.reached()) ++copied_;
  if (filled_ && copied_ > 0) *filled_ = parts_[copied_ - 1].filled;
}

void DeviceCopies::leave_in(FrameBody& body) {
  if (marks_ == nullptr) return;
  uint64_t before = 0;
  auto part = parts_.begin();
  for (const Segment& segment : body.segments) {
    for (; part != parts_.end() && part->begin == segment.data; ++part)
      part->filled = before + part->bytes;
    before += segment.bytes;
  }
  REHEARSAL_CHECK(part == parts_.end(), "the segments are not those that were copied");
  filled_ = std::make_shared<uint64_t>(copied_ > 0 ? parts_[copied_ - 1].filled : 0);
  body.filled = filled_;
}

namespace {

// The host would wait for the device to copy other memory.
at::Tensor pinned(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.is_pinned()) return tensor;
  return at::empty_like(tensor, tensor.options().pinned_memory(true)).copy_(tensor);
}

at::Tensor on_device(const at::Tensor& tensor, c10::Device device) {
  if (has_parts(tensor))
    throw BadValue("a sparse or quantized tensor cannot be put on " + device.str());
  const at::NoGradGuard no_grad;
  const at::Tensor from = pinned(tensor.detach());
  at::Tensor moved = from.to(device, /*non_blocking=*/true);
  return moved.set_requires_grad(tensor.requires_grad());
}

// The placeholder of a lent tensor has its sizes and its type.
at::Tensor copy_of(Borrowed& borrowed, const at::Tensor& placeholder, c10::Device device,
                   const NodeStrand& strand) {
  if (strand.lending() == nullptr)
    throw BadValue("a tensor is lent to this worker, which cannot borrow");
  Result<at::Tensor> elements = strand.lending()->borrow(borrowed.ticket(), placeholder.sizes(),
                                                         placeholder.scalar_type(), device);
  if (!elements.ok())
    throw BadValue("a tensor is lent that cannot be read: " + elements.error().text);
  const at::NoGradGuard no_grad;
  at::Tensor copy = at::empty(placeholder.sizes(), placeholder.options().device(device));
  copy.copy_(elements.value(), /*non_blocking=*/true);
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  borrowed.copied(std::move(elements).value(),
                  std::make_shared<const StreamMarks>(std::vector<c10::Stream>{stream}));
  return copy.set_requires_grad(placeholder.requires_grad());
}

}  // namespace

void put_on_devices(std::vector<at::Tensor>& tensors, std::span<const TensorPlace> places,
                    AllBorrowed& borrowed, const NodeStrand& strand) {
  const DevicesHere& devices = strand.devices();
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i].to == 0 || !tensors[i].defined()) continue;
    const int number = places[i].to - 1;
    if (number >= devices.count)
      throw BadValue("a tensor came for device " + std::to_string(number) + ": this worker has " +
                     std::to_string(devices.count));
    const c10::Device device = devices.at(number);
    const bool is_lent = i < borrowed.size() && borrowed[i] != nullptr;
    tensors[i] =
        is_lent ? copy_of(*borrowed[i], tensors[i], device, strand) : on_device(tensors[i], device);
  }
  borrowed.clear();
}

}  // namespace rehearsal
