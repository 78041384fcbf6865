#include "scenarios/text/vocabulary.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearsal::text {

Vocabulary::Vocabulary(const std::vector<std::string>& training_words, int64_t count_min) {
  std::map<std::string, int64_t> counts;
  for (const std::string& word : training_words) ++counts[word];
  std::vector<std::pair<std::string, int64_t>> known;
  int64_t unknown_count = 0;
  for (const auto& [word, count] : counts) {
    if (count >= count_min) {
      known.emplace_back(word, count);
    } else {
      unknown_count += count;
    }
  }
  known.emplace_back(kUnknown, unknown_count);
  std::stable_sort(known.begin(), known.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  for (auto& [word, count] : known) {
    id_of_word_.emplace(word, size());
    words_.push_back(std::move(word));
  }
}

int64_t Vocabulary::id(const std::string& word) const {
  const auto found = id_of_word_.find(word);
  return found != id_of_word_.end() ? found->second : id_of_word_.at(kUnknown);
}

std::vector<int64_t> Vocabulary::ids(const std::vector<std::string>& words) const {
  std::vector<int64_t> ids;
  ids.reserve(words.size());
  for (const std::string& word : words) ids.push_back(id(word));
  return ids;
}

double unigram_perplexity(const std::vector<int64_t>& training,
                          const std::vector<int64_t>& validation, int64_t vocabulary_size) {
  std::vector<int64_t> counts(static_cast<size_t>(vocabulary_size), 1);
  for (const int64_t id : training) ++counts.at(static_cast<size_t>(id));
  const double total = static_cast<double>(training.size()) + static_cast<double>(vocabulary_size);
  double log_sum = 0;
  for (const int64_t id : validation) {
    log_sum += std::log(static_cast<double>(counts.at(static_cast<size_t>(id))) / total);
  }
  return std::exp(-log_sum / static_cast<double>(validation.size()));
}

}  // namespace rehearsal::text
