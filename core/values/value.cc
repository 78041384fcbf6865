#include "core/values/value.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/frame.h"
#include "core/base/short_text.h"
#include "core/values/device_map.h"
#include "core/values/sent_weight.h"
#include "core/values/tensor_form.h"

namespace rehearsal {
namespace {

constexpr const char* kEndsTooEarly = "the values end too early";
constexpr const char* kOutOfRange = "an integer out of its type's range";
constexpr uint64_t kSignedMax = INT64_MAX;

std::string why_not_sendable(const at::Tensor& tensor) {
  const c10::Device device = tensor.device();
  if (device.is_meta()) return "a tensor on meta has no elements that could be sent";
  if (!device.is_cpu() && has_parts(tensor))
    return "a sparse or quantized tensor on " + device.str() +
           " cannot be sent: move it to the CPU";
  return why_without_form(tensor);
}

DeviceCode code_of(DeviceNumber device) {
  return device.is_cpu() ? DeviceCode{0} : static_cast<DeviceCode>(device.value() + 1);
}

std::string text_of(MapName name) {
  std::string text(name.map);
  if (!name.worker.empty()) text.append(" '").append(name.worker).append("'");
  return text;
}

// Where the map takes a tensor. Throws BadValue if it does not say.
TensorPlace place_of(const at::Tensor& tensor, const DeviceMap& devices, MapName name) {
  const DeviceNumber here(tensor.device());
  const std::optional<DeviceNumber> there = devices.at(here);
  if (!there)
    throw BadValue("a tensor is on " + tensor.device().str() + ", and " + text_of(name) +
                   " has no entry for it: add one (Program::device_map), or move it to the CPU");
  return {code_of(here), code_of(*there)};
}

// A tensor as good as the given one, which stays when its memory goes.
at::Tensor kept_alive(const at::Tensor& tensor) {
  if (!is_borrowed(tensor)) return tensor;
  if (at::GradMode::is_enabled()) return tensor.clone();  // Gradients pass through it.
  return tensor.detach().clone().set_requires_grad(tensor.requires_grad());
}

bool is_lent(const Payload& payload, size_t tensor) {
  if (payload.devices == nullptr) return false;
  const AllBorrowed& borrowed = payload.devices->borrowed;
  return tensor < borrowed.size() && borrowed[tensor] != nullptr;
}

// The bytes in the envelope for each tensor and reference, at most. A tensor of parts has three.
constexpr uint64_t kTensorEntryBytes = 64;
constexpr uint64_t kDimensionBytes = 20;
constexpr uint64_t kPartsMax = 3;
constexpr uint64_t kForkEntryBytes = 128;
// And for all that a message has beside its payload: an error, a name, what autograd adds.
constexpr uint64_t kOtherEntriesBytes = 1 << 20;
static_assert(kErrorBytesMax + kErrorNameMax <= kOtherEntriesBytes / 4 * 3);

constexpr uint64_t kPayloadBytesMax = kEnvelopeBytesMax - kOtherEntriesBytes;

[[noreturn, gnu::cold]] void refuse_bytes(uint64_t bytes, const Payload& payload) {
  throw BadValue("too much for one message: " + std::to_string(bytes) + " bytes beside " +
                 std::to_string(payload.tensors.size()) + " tensors, where " +
                 std::to_string(kPayloadBytesMax) + " are allowed; large data travels in tensors");
}

[[noreturn, gnu::cold]] void refuse_tensors(const Payload& payload, const std::string& why) {
  throw BadValue("too much for one message: " + std::to_string(payload.tensors.size()) +
                 " tensors, " + why);
}

[[noreturn, gnu::cold]] void refuse_weight(const Payload& payload) {
  refuse_tensors(payload,
                 "most of them with few elements or none, would take more of their "
                 "receiver's memory than the " +
                     std::to_string(kDecodedBytes) + " bytes, and " +
                     std::to_string(kDecodedRatio) +
                     " for each that is sent, which are allowed: join them");
}

}  // namespace

Nesting::Nesting(int& depth) : depth_(depth) {
  if (depth_ == kNestingMax)
    throw BadValue("values nested more than " + std::to_string(kNestingMax) + " deep");
  ++depth_;
}

// ---- writing ------------------------------------------------------------------

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

// The zigzag of a number above 2^63 - 1 has 65 bits: nine bytes of seven, and the two that are
// left.
void ValueWriter::unsigned_integer(uint64_t number) {
  if (number <= kSignedMax) return integer(static_cast<int64_t>(number));
  uint64_t rest = number << 1;  // its 64 low bits
  for (int i = 0; i < 9; ++i, rest >>= 7) payload_.values.push_back(static_cast<char>(rest | 0x80));
  payload_.values.push_back(static_cast<char>(rest | 2));
}

void ValueWriter::floating(double number) {
  const auto bytes = std::bit_cast<std::array<char, sizeof number>>(number);
  payload_.values.append(bytes.data(), bytes.size());
}

void ValueWriter::text(std::string_view bytes) {
  count(bytes.size());
  payload_.values.append(bytes);
}

void ValueWriter::tensor(const at::Tensor& tensor) try {
  if (tensor.defined())
    if (std::string why = why_not_sendable(tensor); !why.empty()) throw BadValue(why);
  count(0);
  payload_.tensors.push_back(tensor.defined() ? kept_alive(tensor) : tensor);
} catch (const c10::Error& error) {
  throw BadValue("a tensor that cannot be sent: " + first_line(error));
}

void ValueWriter::handle(std::shared_ptr<RRefHandle> handle) {
  count(0);
  payload_.handles.push_back(std::move(handle));
}

void ValueWriter::versioned(std::span<const FieldAccess> fields, const UnknownFields* kept) {
  count(fields.size() + (kept == nullptr ? 0 : kept->fields.size()));
  std::string& values = payload_.values;
  for (const FieldAccess& field : fields) {
    const size_t start = values.size();
    const size_t tensors = payload_.tensors.size();
    const size_t handles = payload_.handles.size();
    field.write(*this, field.field);
    // The lengths are known now, and belong in front.
    Payload lengths;
    ValueWriter writer(lengths);
    writer.count(values.size() - start);
    writer.count(payload_.tensors.size() - tensors);
    writer.count(payload_.handles.size() - handles);
    values.insert(start, lengths.values);
  }
  if (kept == nullptr) return;
  for (const UnknownField& field : kept->fields) {
    count(field.bytes.size());
    count(field.tensors.size());
    count(field.handles.size());
    values += field.bytes;
    payload_.tensors.insert(payload_.tensors.end(), field.tensors.begin(), field.tensors.end());
    payload_.handles.insert(payload_.handles.end(), field.handles.begin(), field.handles.end());
  }
}

void ValueWriter::place_tensors(const DeviceMap* devices, MapName name) const {
  const std::vector<at::Tensor>& tensors = payload_.tensors;
  const bool maps_cpu =
      devices != nullptr && devices->at(DeviceNumber::cpu()) != DeviceNumber::cpu();
  const bool all_stay =
      !maps_cpu && std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& tensor) {
        return !tensor.defined() || tensor.device().is_cpu();
      });
  if (all_stay) return;
  const DeviceMap none;
  std::vector<TensorPlace> places(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined())
      places[i] = place_of(tensors[i], devices == nullptr ? none : *devices, name);
  payload_.on_devices().places = std::move(places);
}

void ValueWriter::finish(const DeviceMap* devices, MapName name, const DeviceWay& lend) const {
  if (!payload_.tensors.empty()) return send_tensors(devices, name, lend);
  const uint64_t bytes = payload_.values.size() + payload_.handles.size() * kForkEntryBytes;
  if (bytes > kPayloadBytesMax) refuse_bytes(bytes, payload_);
}

void ValueWriter::send_tensors(const DeviceMap* devices, MapName name,
                               const DeviceWay& lend) const {
  if (payload_.places().empty()) place_tensors(devices, name);
  uint64_t bytes = payload_.values.size() + payload_.handles.size() * kForkEntryBytes;
  uint64_t segments = 0;
  for (const at::Tensor& tensor : payload_.tensors) {
    const uint64_t entries = tensor.defined() && has_parts(tensor) ? 1 + kPartsMax : 1;
    const uint64_t dimensions = tensor.defined() ? tensor.dim() + 1 : 0;
    bytes += entries * (kTensorEntryBytes + dimensions * kDimensionBytes);
    segments += entries;
  }
  if (bytes > kPayloadBytesMax) refuse_bytes(bytes, payload_);
  if (segments > kSegmentCountMax)
    refuse_tensors(payload_, "of " + std::to_string(segments) + " parts, where " +
                                 std::to_string(kSegmentCountMax) + " are allowed");
  DeviceCopies copies(lend);
  payload_.sent = sent_tensors(payload_.tensors, payload_.places(), copies);
  if (copies.close())
    payload_.on_devices().copies = std::make_shared<DeviceCopies>(std::move(copies));
  if (are_too_heavy(payload_.sent, payload_.values.size())) refuse_weight(payload_);
}

// ---- reading ------------------------------------------------------------------

ValueReader::ValueReader(Payload& payload)
    : payload_(payload),
      end_{payload.values.size(), payload.tensors.size(), payload.handles.size()},
      room_(room_at_first()) {}

void ValueReader::refuse_size() const {
  throw BadValue("the values would hold more than " + std::to_string(room_at_first()) +
                 " bytes of memory, the most that " + std::to_string(payload_.values.size()) +
                 " bytes may become (PeerLimits::decoded_bytes)");
}

std::string_view ValueReader::take(uint64_t bytes) {
  if (bytes > end_.value - at_.value) throw BadValue(kEndsTooEarly);
  const std::string_view taken = std::string_view(payload_.values).substr(at_.value, bytes);
  at_.value += bytes;
  return taken;
}

uint8_t ValueReader::byte() {
  if (at_.value == end_.value) throw BadValue(kEndsTooEarly);
  return static_cast<uint8_t>(payload_.values[at_.value++]);
}

uint64_t ValueReader::count() {
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t next = byte();
    if (shift == 63 && next > 1) break;
    number |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) return number;
  }
  throw BadValue("a number longer than 64 bits");
}

uint64_t ValueReader::element_count() {
  const uint64_t number = count();
  if (number > end_.value - at_.value) throw BadValue("more elements than bytes");
  return number;
}

bool ValueReader::boolean() {
  const uint64_t value = count();
  if (value > 1) throw BadValue("a bool that is neither true nor false");
  return value == 1;
}

int64_t ValueReader::integer() {
  const uint64_t zigzag = count();
  return static_cast<int64_t>(zigzag >> 1) ^ -static_cast<int64_t>(zigzag & 1);
}

uint64_t ValueReader::unsigned_integer() {
  uint64_t rest = 0;
  for (int shift = 0; shift < 63; shift += 7) {
    const uint8_t next = byte();
    rest |= uint64_t{next & 0x7fu} << shift;
    if (next >= 0x80) continue;
    if ((rest & 1) != 0) throw BadValue(kOutOfRange);
    return rest >> 1;
  }
  const uint8_t last = byte();
  if (last > 3) throw BadValue("a number longer than 65 bits");
  if ((rest & 1) != 0) throw BadValue(kOutOfRange);
  return rest >> 1 | uint64_t{last} << 62;
}

double ValueReader::floating() {
  double number;
  std::memcpy(&number, take(sizeof number).data(), sizeof number);
  return number;
}

// A short text lies in its std::string.
std::string ValueReader::text() {
  const std::string_view bytes = take(count());
  if (bytes.size() > std::string().capacity()) hold_block(bytes.size() + 1, 1);
  return std::string(bytes);
}

at::Tensor ValueReader::tensor() {
  if (count() != 0) throw BadValue("not a tensor");
  if (at_.tensor >= end_.tensor) throw BadValue("fewer tensors than named");
  if (is_lent(payload_, at_.tensor))
    throw BadValue("a tensor is lent where none is put on a device");
  at::Tensor tensor = std::move(payload_.tensors[at_.tensor++]);
  if (tensor.defined() && has_parts(tensor))
    if (std::string why = why_bad_contents(tensor); !why.empty()) throw BadValue(why);
  return tensor;
}

std::shared_ptr<RRefHandle> ValueReader::handle() {
  if (count() != 0) throw BadValue("not a remote reference");
  if (at_.handle >= end_.handle) throw BadValue("fewer references than named");
  return std::move(payload_.handles[at_.handle++]);
}

// The lengths in front of a field, which must lie in what is around it.
ValueReader::Place ValueReader::field_end() {
  const uint64_t bytes = count();
  const uint64_t tensors = count();
  const uint64_t handles = count();
  if (bytes > end_.value - at_.value) throw BadValue(kEndsTooEarly);
  if (tensors > end_.tensor - at_.tensor) throw BadValue("fewer tensors than named");
  if (handles > end_.handle - at_.handle) throw BadValue("fewer references than named");
  return {at_.value + bytes, at_.tensor + tensors, at_.handle + handles};
}

void ValueReader::field(const FieldAccess& access) {
  const Place outer = std::exchange(end_, field_end());
  access.read(*this, access.field);
  finish();
  end_ = outer;
}

UnknownField ValueReader::unknown_field() {
  const Place end = field_end();
  UnknownField field;
  hold(2, sizeof field);  // The vector that it comes into grows.
  hold_block(end.value - at_.value, 1);
  hold_block(end.tensor - at_.tensor, 2 * sizeof(at::Tensor));
  hold_block(end.handle - at_.handle, 2 * sizeof(std::shared_ptr<RRefHandle>));
  field.bytes = take(end.value - at_.value);
  for (; at_.tensor < end.tensor; ++at_.tensor)
    field.tensors.push_back(std::move(payload_.tensors[at_.tensor]));
  for (; at_.handle < end.handle; ++at_.handle)
    field.handles.push_back(std::move(payload_.handles[at_.handle]));
  return field;
}

void ValueReader::versioned(std::string_view name, std::span<const FieldAccess> fields,
                            UnknownFields* unknown) {
  const uint64_t given = element_count();
  if (given > fields.size() && unknown == nullptr)
    throw BadValue("a '" + std::string(name) + "' of a newer version: it has " +
                   std::to_string(given) + " fields, of which " + std::to_string(fields.size()) +
                   " are known here");
  for (uint64_t i = 0; i < given; ++i) {
    try {
      if (i < fields.size())
        field(fields[i]);
      else
        unknown->fields.push_back(unknown_field());
    } catch (const BadValue& bad) {
      throw BadValue("field " + std::to_string(i + 1) + " of '" + std::string(name) +
                     "': " + bad.what());
    }
  }
}

void ValueReader::finish() const {
  if (at_.value != end_.value) throw BadValue("more values than the signature has");
  if (at_.tensor != end_.tensor) throw BadValue("more tensors than named");
  if (at_.handle != end_.handle) throw BadValue("more references than named");
  payload_.decoded = room_at_first() - room_;
}

BadValue ValueReader::in_argument(const BadValue& bad) const {
  return BadValue("argument " + std::to_string(argument_) + ": " + bad.what());
}

// ---- signatures ---------------------------------------------------------------

bool WireSignature::begin_struct(std::type_index type) {
  const auto found = std::find(open_.rbegin(), open_.rend(), type);
  if (found != open_.rend()) {
    text_ += "struct^" + std::to_string(found - open_.rbegin());
    return false;
  }
  open_.push_back(type);
  text_ += "struct(";
  return true;
}

void WireSignature::end_struct() {
  open_.pop_back();
  text_ += ')';
}

namespace detail {

// ---- containers without an order ----------------------------------------------

void EntriesInOrder::add(Payload&& key, const void* entry) {
  if (!key.tensors.empty() || !key.handles.empty())
    throw BadValue("an unordered container whose keys hold tensors or references cannot be sent");
  entries_.push_back({std::move(key.values), entry});
}

const std::vector<EntriesInOrder::Entry>& EntriesInOrder::in_order() {
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& one, const Entry& other) { return one.key < other.key; });
  return entries_;
}

// ---- lengths of time ----------------------------------------------------------

uint64_t read_unit(ValueReader& reader) {
  const uint64_t part = reader.count();
  if (part == 0 || part > kSignedMax) throw BadValue("a length of time without a unit");
  return part;
}

int64_t count_in(const UnitCount& given, uint64_t numerator, uint64_t denominator) {
  using Wide = __int128;
  const uint64_t numerators = std::gcd(given.numerator, numerator);
  const uint64_t denominators = std::gcd(given.denominator, denominator);
  const Wide factor = Wide{given.numerator / numerators} * Wide{denominator / denominators};
  const Wide divisor = Wide{given.denominator / denominators} * Wide{numerator / numerators};
  if (given.count % divisor != 0)
    throw BadValue("a length of time that is no whole number of its type's units");
  Wide count;
  if (__builtin_mul_overflow(given.count / divisor, factor, &count) || count > INT64_MAX ||
      count < INT64_MIN)
    throw BadValue("a length of time out of its type's range");
  return static_cast<int64_t>(count);
}

}  // namespace detail
}  // namespace rehearsal
