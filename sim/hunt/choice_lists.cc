#include "sim/hunt/choice_lists.h"

#include <algorithm>
#include <set>

namespace rehearsal::sim {

std::vector<std::string> texts_of(const std::vector<Override>& choices) {
  std::vector<std::string> texts;
  for (const Override& choice : choices) texts.push_back(to_string(choice));
  return texts;
}

std::vector<Override> parse_overrides(const std::vector<std::string>& texts) {
  std::vector<Override> choices;
  for (const std::string& text : texts) choices.push_back(parse_override(text));
  return choices;
}

bool is_of_strategy(const Override& choice) {
  const DecisionKind kind = choice.key.kind;
  return kind == DecisionKind::pick || kind == DecisionKind::priority || kind == DecisionKind::plan;
}

bool is_deviation(const Override& choice) { return choice.key.kind == DecisionKind::hold; }

void drop_absent(std::vector<Override>& choices, const std::vector<std::string>& absent_keys) {
  if (absent_keys.empty()) return;
  const std::set<std::string> absent(absent_keys.begin(), absent_keys.end());
  std::erase_if(choices, [&absent](const Override& choice) {
    return absent.contains(net_fake::to_string(choice.key));
  });
}

void sort_by_key(std::vector<Override>& choices) {
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Override& one, const Override& other) { return one.key < other.key; });
}

}  // namespace rehearsal::sim
