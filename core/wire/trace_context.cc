#include "core/wire/trace_context.h"

namespace rehearsal {
namespace {

constexpr size_t kLength = 55;  // 00-TRACE-PARENT-FLAGS

std::optional<uint64_t> hex_number(std::string_view digits) {
  uint64_t value = 0;
  for (const char digit : digits) {
    if (digit >= '0' && digit <= '9')
      value = value << 4 | static_cast<uint64_t>(digit - '0');
    else if (digit >= 'a' && digit <= 'f')
      value = value << 4 | static_cast<uint64_t>(digit - 'a' + 10);
    else
      return std::nullopt;
  }
  return value;
}

void append_hex(std::string& out, uint64_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += "0123456789abcdef"[value >> shift & 15];
}

}  // namespace

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[35] != '-' || text[52] != '-')
    return std::nullopt;
  const auto version = hex_number(text.substr(0, 2));
  const auto high = hex_number(text.substr(3, 16));
  const auto low = hex_number(text.substr(19, 16));
  const auto parent = hex_number(text.substr(36, 16));
  const auto flags = hex_number(text.substr(53, 2));
  if (!version || !high || !low || !parent || !flags) return std::nullopt;
  if (*version == 0xff) return std::nullopt;
  if (text.size() > kLength && (*version == 0 || text[kLength] != '-')) return std::nullopt;
  if ((*high == 0 && *low == 0) || *parent == 0) return std::nullopt;
  return TraceContext{.trace = {*high, *low},
                      .parent = *parent,
                      .flags = static_cast<uint8_t>(*flags & kTraceFlags)};
}

std::string to_traceparent(const TraceContext& context) {
  std::string text = "00-";
  append_hex(text, context.trace.high, 16);
  append_hex(text, context.trace.low, 16);
  text += '-';
  append_hex(text, context.parent, 16);
  text += '-';
  append_hex(text, context.flags, 2);
  return text;
}

TraceContext within(const TraceContext& context, const CallId& call) {
  const Hash128 place = call.place();
  const uint64_t span = mix(mix(place.high, place.low), call.incarnation.value);
  return {.trace = context.trace, .parent = span == 0 ? 1 : span, .flags = context.flags};
}

}  // namespace rehearsal
