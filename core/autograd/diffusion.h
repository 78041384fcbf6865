#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/base/ids.h"
#include "core/wire/message.h"

namespace rehearsal {

// A diffusing computation (Dijkstra and Scholten 1980) as one worker sees it. Every message of it
// is answered: the one that engages an idle worker when this worker is at rest and its own messages
// are answered, any other at once. A root of it is never engaged. So the roots learn when nothing
// of it is under way any more.
class Diffusion {
 public:
  struct Answer {
    WorkerId to;
    Message message;
  };

  // A message came, which `answer` answers. Gives back what has to be sent at once.
  [[nodiscard]] std::optional<Answer> take_in(Answer answer, bool engages) {
    if (!engages || engaged_by_) return answer;
    engaged_by_ = std::move(answer);
    return std::nullopt;
  }

  // `message` went to `to`.
  void note_sent(WorkerId to, const CausalId& message = {}) {
    ++unanswered_;
    ++sent_[{to, message}];
  }

  // False if `from` has no such message to answer.
  [[nodiscard]] bool note_answered(WorkerId from, const CausalId& message = {}) {
    const auto sent = sent_.find({from, message});
    if (sent == sent_.end()) return false;
    if (--sent->second == 0) sent_.erase(sent);
    --unanswered_;
    return true;
  }

  // REQUIRES: the worker is at rest. Gives back what has to be sent now.
  [[nodiscard]] std::optional<Answer> rest() {
    if (unanswered_ > 0) return std::nullopt;
    return std::exchange(engaged_by_, std::nullopt);
  }

  [[nodiscard]] uint64_t unanswered() const { return unanswered_; }

 private:
  uint64_t unanswered_ = 0;                                 // messages of our own
  std::map<std::pair<WorkerId, CausalId>, uint64_t> sent_;  // these, by receiver
  std::optional<Answer> engaged_by_;
};

}  // namespace rehearsal
