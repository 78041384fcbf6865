#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/api/worker.h"
#include "core/base/short_text.h"

namespace rehearsal {

// The workers whose mains save together.
class CheckpointMembers {
 public:
  // None named: this worker alone. Throws std::invalid_argument if it is none of them, and for a
  // name that nobody has.
  CheckpointMembers(const Worker& worker, const std::vector<std::string>& names);

  // Whether this worker gives the orders to all: the first in rank order.
  [[nodiscard]] bool leads() const { return names_.front() == worker_.name(); }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // Runs `body` here and parks until all members have done so: what they return, in rank order.
  // Throws RpcError at all of them if it failed at one; protocol, which names the member, if one
  // gives a failure of no known kind. T may be sent, and is small.
  template <class T, class Body>
  std::vector<T> together(Body body) const {
    if (names_.size() == 1) return {body()};
    Word<T> word;
    try {
      word.value = body();
    } catch (const RpcError& error) {
      word.fail(error.error());
    } catch (const std::exception& error) {
      word.fail({.kind = ErrorKind::remote_exception, .text = short_text(error.what())});
    }
    const std::map<std::string, Word<T>> words = worker_.all_gather(word, names_, Timeout::never());
    std::vector<T> values;
    for (const std::string& name : names_) {
      const Word<T>& said = words.at(name);
      if (said.failed) throw_failure_of(name, said.kind, said.text, said.worker);
      values.push_back(said.value);
    }
    return values;
  }

 private:
  template <class T>
  struct Word {
    bool failed = false;
    uint8_t kind = 0;
    std::string text;
    std::string worker;
    T value{};

    void fail(const Error& error) {
      failed = true;
      kind = static_cast<uint8_t>(error.kind);
      text = short_text(error.text);  // The word of one that is too long would not come.
      worker = short_name(error.worker);
    }
    friend void describe(Word& word, auto&& fields) {
      fields(word.failed, word.kind, word.text, word.worker, word.value);
    }
  };

  // Throws the failure that a member tells of. A kind that is none is an error of kind protocol.
  [[noreturn]] static void throw_failure_of(const std::string& member, uint8_t kind,
                                            const std::string& text, const std::string& worker);

  const Worker worker_;
  std::vector<std::string> names_;
};

}  // namespace rehearsal
