#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/message_differencer.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/api/protobuf_value.h"
#include "scenarios/storm/actor.h"
#include "scenarios/storm/features.h"

// An actor's operations with values that are more than numbers and plain tensors.
namespace rehearsal::storm {
namespace {

enum class Care : uint8_t { none, fragile, urgent };

// Programs of two versions pass this type on to each other: this is the newer one's.
struct Parcel {
  int64_t number = 0;
  RRef<Counter> counter;
  std::vector<at::Tensor> tensors;
  c10::Dict<std::string, c10::List<double>> labels;
  google::protobuf::Struct note;
  std::variant<Care, std::string> care;
  std::chrono::milliseconds due{};
  UnknownFields unknown;
  friend void describe(Parcel& parcel, auto&& fields) {
    fields.versioned("Parcel", parcel.unknown, parcel.number, parcel.counter, parcel.tensors,
                     parcel.labels, parcel.note, parcel.care, parcel.due);
  }
};

// The older program knows a parcel's number only, and keeps the rest for the next.
struct OlderParcel {
  int64_t number = 0;
  UnknownFields unknown;
  friend void describe(OlderParcel& parcel, auto&& fields) {
    fields.versioned("Parcel", parcel.unknown, parcel.number);
  }
};

std::vector<at::Tensor> tensors_of(int64_t number) {
  const at::Tensor plain = at::full({2, 3}, static_cast<double>(number % 100));
  return {at::quantize_per_tensor(plain, 0.5, 3, at::kQUInt8),
          plain.to(at::kComplexFloat) * c10::complex<float>(0, 1),
          plain.to(at::kBFloat16),
          plain.to(at::kFloat8_e4m3fn),
          at::eye(3).to_sparse(),
          plain.t(),
          at::empty({0, 4}, at::kBool)};
}

google::protobuf::Struct note_of(int64_t number) {
  google::protobuf::Struct note;
  auto& fields = *note.mutable_fields();
  fields["number"].set_number_value(static_cast<double>(number));
  fields["words"].mutable_list_value()->add_values()->set_string_value("with care");
  return note;
}

bool same(const at::Tensor& one, const at::Tensor& other) {
  if (one.scalar_type() != other.scalar_type() || one.layout() != other.layout() ||
      one.sizes() != other.sizes())
    return false;
  if (one.is_sparse()) return at::equal(one.to_dense(), other.to_dense());
  if (one.is_quantized())
    return one.q_scale() == other.q_scale() && at::equal(one.int_repr(), other.int_repr());
  if (one.scalar_type() == at::kFloat8_e4m3fn)
    return at::equal(one.view(at::kByte), other.view(at::kByte));
  return at::equal(one, other);
}

// One more, and on along the journey, to a newer or an older worker.
template <class P>
P pass_on(CallContext& context, P parcel, const Journey& journey) {
  ++parcel.number;
  if (journey.hops == 0) return parcel;
  const Leg leg = next_leg(journey, context.caller()->names().size());
  const char* const next = leg.journey.word % 2 == 0 ? "deliver" : "deliver_as_older";
  return context.rpc_sync<P>(leg.to, next, parcel, leg.journey);
}

// Of this number: quantised, complex, sparse, strided and very short ones among its tensors.
Parcel make_parcel(int64_t number, const RRef<Counter>& counter) {
  Parcel parcel;
  parcel.number = number;
  parcel.counter = counter;
  parcel.tensors = tensors_of(number);
  parcel.labels.insert("halves", c10::List<double>({0.5 * static_cast<double>(number)}));
  parcel.note = note_of(number);
  if (number % 2 == 0)
    parcel.care = number % 3 == 0 ? Care::fragile : Care::urgent;
  else
    parcel.care = "number " + std::to_string(number);
  parcel.due = std::chrono::milliseconds(number);
  return parcel;
}

// Whether all but the number and the counter is what make_parcel gives for `number`.
bool is_whole(const Parcel& parcel, int64_t number) {
  const Parcel made = make_parcel(number, {});
  if (parcel.tensors.size() != made.tensors.size()) return false;
  for (size_t i = 0; i < made.tensors.size(); ++i)
    if (!same(parcel.tensors[i], made.tensors[i])) return false;
  return parcel.labels.size() == 1 && parcel.labels.at("halves") == made.labels.at("halves") &&
         google::protobuf::util::MessageDifferencer::Equals(parcel.note, made.note) &&
         parcel.care == made.care && parcel.due == made.due;
}

Parcel deliver(CallContext& context, Parcel parcel, const Journey& journey) {
  return pass_on(context, std::move(parcel), journey);
}

OlderParcel deliver_as_older(CallContext& context, OlderParcel parcel, const Journey& journey) {
  return pass_on(context, std::move(parcel), journey);
}

}  // namespace

void register_values(FunctionRegistry& registry) {
  registry.function("deliver", &deliver).function("deliver_as_older", &deliver_as_older);
}

// Through workers of two versions: what the older ones do not know, the counter's reference too,
// must come back with it.
void Actor::send_parcel(Dice& dice) {
  const WorkerId owner = anybody(dice);
  const WorkerId to = anybody(dice);
  const Journey way = journey(dice, 4);
  const char* const first = dice.happens(50) ? "deliver" : "deliver_as_older";
  const Parcel sent = make_parcel(way.value, worker_.remote<Counter>(owner, way.value));
  const auto back = worker_.rpc_sync<Parcel>(to, first, sent, way);
  expect("a parcel's number", way.value + way.hops + 1, back.number);
  expect("a parcel that came back whole", 1, is_whole(back, way.value) ? 1 : 0);
  expect("a parcel's counter", way.value, back.counter.rpc_sync(&Counter::total));
}

}  // namespace rehearsal::storm
