#include "core/base/short_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

#include "core/base/error.h"

namespace rehearsal {
namespace {

constexpr std::string_view kLeftOut = "… and ";
constexpr std::string_view kBytesMore = " bytes more";
constexpr std::string_view kMore = " more";

// "67,043,328"; no number of 64 bits has more digits and commas.
constexpr size_t kGroupedMax = 26;

// Beside what is kept of a text: what is said of the rest, and what protobuf says of the field.
constexpr size_t kAroundMax = 64;
// Of a brief error. The text's difference leaves room for what is said of the rest.
constexpr size_t kBriefTextMax = 640;
constexpr size_t kBriefTextKept = 512;
constexpr size_t kBriefNameMax = 128;
constexpr size_t kBriefChainMax = 4;

constexpr size_t kNames = 3;  // worker, function, type
static_assert(2 * (kErrorTextMax + kAroundMax) +
                  (kNames + kErrorChainMax + 1) * (kErrorNameMax + kAroundMax) <
              kErrorBytesMax);

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t place = digits.size(); place > 3;) {
    place -= 3;
    digits.insert(place, 1, ',');
  }
  return digits;
}

std::optional<uint64_t> ungrouped(std::string_view text) {
  std::string digits(text);
  std::erase(digits, ',');
  uint64_t number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number);
  if (error != std::errc() || end != last) return std::nullopt;
  return number;
}

std::string words_for(uint64_t left_out, std::string_view unit) {
  return std::string(kLeftOut) + grouped(left_out) + std::string(unit);
}

// A text that was cut before: what was kept of it, and how much was not.
struct Cut {
  size_t kept = 0;
  uint64_t left_out = 0;
};

Cut cut_of(std::string_view text, std::string_view unit) {
  const Cut whole{text.size(), 0};
  if (!text.ends_with(unit)) return whole;
  const std::string_view before = text.substr(0, text.size() - unit.size());
  const size_t looked_at = std::min(before.size(), kLeftOut.size() + kGroupedMax);
  const std::string_view end = before.substr(before.size() - looked_at);
  const size_t begin = end.rfind(kLeftOut);
  if (begin == std::string_view::npos) return whole;
  const std::optional<uint64_t> left_out = ungrouped(end.substr(begin + kLeftOut.size()));
  if (!left_out) return whole;
  return {before.size() - looked_at + begin, *left_out};
}

// Where to cut so that no character of UTF-8 is: it has four bytes at most.
size_t end_of_character(std::string_view text, size_t end) {
  constexpr size_t kMoreBytes = 3;
  for (size_t back = 0; back <= std::min(kMoreBytes, end); ++back)
    if ((static_cast<uint8_t>(text[end - back]) & 0xC0U) != 0x80U) return end - back;
  return end;
}

// How much of a text is kept; all of it: it is short.
Cut shorter(std::string_view text, size_t longest, size_t kept) {
  if (text.size() <= longest) return {text.size(), 0};
  const Cut before = cut_of(text, kBytesMore);
  if (before.kept <= longest) return {text.size(), 0};
  const size_t end = end_of_character(text, kept);
  return {end, before.left_out + (before.kept - end)};
}

std::string shortened(std::string_view text, size_t longest, size_t kept) {
  const Cut cut = shorter(text, longest, kept);
  if (cut.kept == text.size()) return std::string(text);
  return std::string(text.substr(0, cut.kept)) + words_for(cut.left_out, kBytesMore);
}

void shorten_text(std::string& text) {
  if (text.size() > kErrorTextMax) text = short_text(text);
}

void shorten_name(std::string& name) {
  if (name.size() > kErrorNameMax) name = short_name(name);
}

}  // namespace

std::string short_text(std::string_view text) {
  return shortened(text, kErrorTextMax, kErrorTextKept);
}

std::string short_name(std::string_view name) {
  return shortened(name, kErrorNameMax, kErrorNameMax);
}

std::vector<std::string> short_chain(const std::vector<std::string>& chain) {
  const size_t kept = std::min(chain.size(), kErrorChainMax);
  std::vector<std::string> workers;
  for (size_t i = 0; i < kept; ++i) workers.push_back(short_name(chain[i]));
  if (kept == chain.size()) return workers;
  const uint64_t before = cut_of(chain[kept], kMore).left_out;  // when it was cut last
  const uint64_t behind = chain.size() - kept;
  workers.push_back(words_for(before > 0 ? before + behind - 1 : behind, kMore));
  return workers;
}

void make_brief(Error& error) {
  error.text = shortened(error.text, kBriefTextMax, kBriefTextKept);
  error.trace.clear();
  error.exception.reset();
  if (error.chain.size() > kBriefChainMax) error.chain.resize(kBriefChainMax);
  for (std::string* const name : {&error.worker, &error.function, &error.type})
    *name = shortened(*name, kBriefNameMax, kBriefNameMax);
  for (std::string& worker : error.chain) worker = shortened(worker, kBriefNameMax, kBriefNameMax);
}

void shorten(Error& error) {
  shorten_text(error.text);
  shorten_text(error.trace);
  shorten_name(error.worker);
  shorten_name(error.function);
  shorten_name(error.type);
  const bool is_short =
      error.chain.size() <= kErrorChainMax &&
      std::all_of(error.chain.begin(), error.chain.end(),
                  [](const std::string& worker) { return worker.size() <= kErrorNameMax; });
  if (!is_short) error.chain = short_chain(error.chain);
}

}  // namespace rehearsal
