#include "core/checkpoint/checkpoint_head.h"

#include <ATen/core/Dict.h>
#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>

#include <algorithm>
#include <stdexcept>

namespace rehearsal {
namespace {

// Of the head and of the parts that it names. Raised when an earlier program could not read them.
constexpr int64_t kFormat = 1;

std::vector<std::string> texts_in(const c10::IValue& list) {
  std::vector<std::string> texts;
  for (const c10::IValue& text : list.toListRef()) texts.push_back(text.toStringRef());
  return texts;
}

void put_tag(c10::impl::GenericDict& into, const CheckpointTag& tag) {
  into.insert("run", static_cast<int64_t>(tag.run));
  into.insert("step", tag.step);
}

}  // namespace

c10::impl::GenericDict any_dictionary() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

c10::IValue list_of(const std::vector<std::string>& texts) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

CheckpointTag tag_in(const c10::impl::GenericDict& content) {
  return {static_cast<uint64_t>(content.at("run").toInt()), content.at("step").toInt()};
}

std::optional<size_t> CheckpointHead::slot_of(const CheckpointTag& tag) const {
  for (size_t i = 0; i < slots.size(); ++i)
    if (slots[i] && slots[i]->tag == tag) return i;
  return std::nullopt;
}

size_t CheckpointHead::next_slot() const {
  for (size_t i = 0; i < slots.size(); ++i)
    if (!slots[i]) return i;
  if (slots[0]->tag == committed) return 1;
  if (slots[1]->tag == committed) return 0;
  return slots[0]->tag < slots[1]->tag ? 0 : 1;
}

c10::IValue to_ivalue(const CheckpointHead& head) {
  c10::impl::GenericDict value = any_dictionary();
  value.insert("format", kFormat);
  c10::impl::GenericDict committed = any_dictionary();
  put_tag(committed, head.committed);
  value.insert("committed", committed);
  c10::impl::GenericList slots(c10::AnyType::get());
  for (const auto& slot : head.slots) {
    if (!slot) {
      slots.emplace_back(c10::IValue());
      continue;
    }
    c10::impl::GenericDict copy = any_dictionary();
    put_tag(copy, slot->tag);
    copy.insert("holders", list_of(slot->holders));
    copy.insert("pieces", list_of(slot->pieces));
    slots.emplace_back(copy);
  }
  value.insert("slots", slots);
  return value;
}

CheckpointHead checkpoint_head(const c10::IValue& value) {
  CheckpointHead head;
  const c10::impl::GenericDict fields = value.toGenericDict();
  if (const int64_t format = fields.at("format").toInt(); format != kFormat)
    throw std::runtime_error("it has format " + std::to_string(format) +
                             ", and this program reads format " + std::to_string(kFormat));
  head.committed = tag_in(fields.at("committed").toGenericDict());
  const c10::impl::GenericList slots = fields.at("slots").toList();
  for (size_t i = 0; i < std::min(slots.size(), head.slots.size()); ++i) {
    const c10::IValue slot = slots.get(i);
    if (slot.isNone()) continue;
    const c10::impl::GenericDict copy = slot.toGenericDict();
    head.slots[i] = CheckpointCopy{.tag = tag_in(copy),
                                   .holders = texts_in(copy.at("holders")),
                                   .pieces = texts_in(copy.at("pieces"))};
  }
  return head;
}

}  // namespace rehearsal
