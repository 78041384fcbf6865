#include "core/functions/caller_rule.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>

namespace rehearsal {
namespace {

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

bool is_meant(std::string_view entry, std::string_view caller) {
  if (!caller.starts_with(entry)) return false;
  const std::string_view rest = caller.substr(entry.size());
  return rest.empty() || (!is_digit(entry.back()) && std::ranges::all_of(rest, is_digit));
}

}  // namespace

CallerRule::CallerRule(std::vector<std::string> entries) : entries_(std::move(entries)) {
  if (entries_.empty()) throw std::invalid_argument("callable_by names nobody");
  if (std::ranges::find(entries_, "") != entries_.end())
    throw std::invalid_argument("callable_by has an empty name");
}

bool CallerRule::admits(std::string_view caller) const {
  return entries_.empty() || std::ranges::any_of(entries_, [caller](const std::string& entry) {
           return is_meant(entry, caller);
         });
}

std::string CallerRule::text() const {
  std::string text;
  for (const std::string& entry : entries_)
    text.append(text.empty() ? "'" : ", '").append(entry).append("'");
  return text;
}

}  // namespace rehearsal
