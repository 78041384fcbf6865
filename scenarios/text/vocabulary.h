// The words a model knows, each with a number from 0 to size() - 1.
//
// Words the training text has less often than `count_min` share the number of `kUnknown`, as do
// words it does not have at all. Numbers go by count, most frequent first, ties by byte order: they
// depend on the words alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rehearsal::text {

inline constexpr const char* kUnknown = "<unknown>";

class Vocabulary {
 public:
  explicit Vocabulary(const std::vector<std::string>& training_words, int64_t count_min = 1);

  int64_t size() const { return static_cast<int64_t>(words_.size()); }
  int64_t id(const std::string& word) const;
  const std::string& word(int64_t id) const { return words_.at(static_cast<size_t>(id)); }

  std::vector<int64_t> ids(const std::vector<std::string>& words) const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, int64_t> id_of_word_;
};

// The perplexity of the model that knows how often each word comes and nothing else: probabilities
// are the training counts plus one. A language model must beat this by far.
double unigram_perplexity(const std::vector<int64_t>& training,
                          const std::vector<int64_t>& validation, int64_t vocabulary_size);

}  // namespace rehearsal::text
