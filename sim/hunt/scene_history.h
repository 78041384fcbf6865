#pragma once

#include <array>
#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "sim/explain/chronicle.h"
#include "sim/explain/history.h"
#include "sim/places/source_places.h"
#include "sim/explain/throw_watch.h"
#include "sim/hunt/span_taker.h"

namespace rehearsal::sim {

// The history of a scene, which may make several clusters: that of the last one, and the exception
// that the scene itself threw, before, between or after the cluster's steps. While it lives, each
// throw on the calling thread is noted with its stack. Changes nothing in the run.
class SceneHistory final : public HistorySink, private ThrowListener {
 public:
  // `spans`: told of each cluster that begins; null: there are none.
  explicit SceneHistory(SpanTaker* spans = nullptr) : spans_(spans), watch_(*this) {}

  void begin(const std::vector<std::string>& workers) override;
  void add(Entry entry) override { entries_.push_back(std::move(entry)); }

  // This exception has ended the scene: the run fails where it was thrown, unless it failed before.
  // Nothing if that is not known.
  void ended_by(const std::exception_ptr& thrown);

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] Chronicle chronicle() const;

 private:
  void on_throw(const std::type_info& type, const std::exception* thrown,
                const void* object) override;

  struct Throw {
    const void* object = nullptr;
    size_t place = 0;  // so many entries were there
    std::string text;
    std::string stack;
  };

  SpanTaker* const spans_;
  std::vector<std::string> workers_;
  std::vector<Entry> entries_;
  SourcePlaces source_;
  std::array<Throw, 16> last_;  // more are seldom on their way at once
  size_t next_ = 0;
  const ThrowWatch watch_;
};

}  // namespace rehearsal::sim
