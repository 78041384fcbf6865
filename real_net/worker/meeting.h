#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "real_net/worker/group_card.h"
#include "real_net/worker/meeting_store.h"
#include "real_net/worker/patience.h"
#include "real_net/worker/rendezvous.h"

namespace rehearsal::real {

// A worker that waits looks at the store so soon, then ever more rarely, up to so long apart.
inline constexpr auto kFirstLook = std::chrono::milliseconds(2);
inline constexpr auto kLooksApart = std::chrono::milliseconds(100);

// One life of one worker in one group, as the store has it; Rendezvous says what its calls promise.
//
// The keys of a run: `groups`, the number of those that are over; `foreigners`, how many came with
// another secret; and of each group, below `group<number>/`:
//   card                what its workers agree on, of the first to come
//   claims/<rank>       how often somebody came as that rank, or failed before it could
//   members/<rank>      where that worker is, or that it has gone
//   changes             how often a record has been replaced
//   arrived, formed     of a static group: all have read all records
//   over                it has ended well
//   news                counts what those that wait should look at, which is:
//   failure             why the group will not form; `read` counts those who know
//   roll                somebody asks who waits; answers are counted in `present/<rank>`
//   refusals            how many have been refused, and of each `refusal/<number>`
class Meeting {
 public:
  // The options outlive it.
  explicit Meeting(const RendezvousOptions& options);
  ~Meeting();

  [[nodiscard]] Result<uint32_t> enter();
  [[nodiscard]] Result<Members> meet(const MemberRecord& self);
  void give_up(const Error& why);
  void refuse(const Error& why);
  void leave(bool with_all);

  // REQUIRES: `enter` went well.
  [[nodiscard]] const MeetingStore& store() const { return *store_; }
  [[nodiscard]] const std::optional<std::vector<WorkerId>>& founds_after() const {
    return founds_after_;
  }

  // Whether a later group has begun. Throws what the store throws, as `changed` does.
  [[nodiscard]] bool is_over();
  [[nodiscard]] Error ended() const;
  // After the store has failed: why the group cannot be joined any more, if so. A static group
  // needs rank 0 for that, which has ended with the store that it served.
  [[nodiscard]] MaybeError ended_with_store() const;
  // The records of other workers that are not what they were when they were read last.
  [[nodiscard]] Members changed();

 private:
  static constexpr char kGone[] = "gone";    // instead of a record
  static constexpr char kEnded[] = "ended";  // instead of a card

  // c10d reports everything by exceptions of several types.
  template <class Value, class Body>
  Result<Value> try_to(Body body) {
    try {
      return body();
    } catch (const ForeignText& text) {
      return foreign(text);
    } catch (const std::exception& error) {
      return store_failed(error);
    }
  }
  [[nodiscard]] Error store_failed(const std::exception& error) const;
  [[nodiscard]] Error foreign(const ForeignText& text);

  [[nodiscard]] uint32_t rank() const { return options_.placement.rank; }
  [[nodiscard]] uint32_t world_size() const { return static_cast<uint32_t>(options_.names.size()); }
  [[nodiscard]] bool serves() const;
  [[nodiscard]] std::string describe(uint32_t rank) const;
  [[nodiscard]] std::string place() const { return MeetingStore::place(options_.placement); }
  [[nodiscard]] std::string key(const std::string& name, uint32_t rank) const;

  // Coming.
  [[nodiscard]] Result<bool> serves_this_run();
  [[nodiscard]] Error of_another_run(const GroupCard& theirs);
  [[nodiscard]] Result<uint32_t> claim();
  void choose_group();
  [[nodiscard]] Error too_many_lives();
  [[nodiscard]] Error does_not_fit(const GroupCard& first, const std::string& what);
  [[nodiscard]] Error place_is_taken(const std::string& where);
  [[nodiscard]] std::optional<MemberRecord> record_of(uint32_t rank);
  [[nodiscard]] bool is_there(uint32_t rank);
  [[nodiscard]] bool predecessor_lives();
  [[nodiscard]] std::vector<WorkerId> others_that_live();
  [[nodiscard]] bool anybody_is_there(const GroupCard& first);
  [[nodiscard]] bool answers_roll(const std::string& who, Duration limit);
  [[nodiscard]] bool alone();
  void end_group();

  // Meeting.
  [[nodiscard]] int64_t changes();
  [[nodiscard]] Result<Members> look();
  [[nodiscard]] Result<Members> meet_all();
  [[nodiscard]] Status wait_for_all();
  [[nodiscard]] MaybeError hear_news();
  [[nodiscard]] std::optional<std::string> refusal(int64_t number);
  [[nodiscard]] Error why_it_failed();
  [[nodiscard]] std::string missing_ranks();
  [[nodiscard]] Error missing();
  [[nodiscard]] Status check(uint32_t rank, const std::optional<MemberRecord>& record) const;

  // Telling others.
  void fail_group(const std::string& why);
  void note_refusal(const std::string& line);
  [[nodiscard]] int64_t all_others() const;
  [[nodiscard]] int64_t others_there();
  void let_them_read(int64_t readers, Duration limit);

  const RendezvousOptions& options_;
  const Seal seal_;
  GroupCard card_;
  Patience patience_;
  std::unique_ptr<MeetingStore> store_;
  int64_t number_ = 0;  // of the group, among those of the run
  std::string group_;   // before its keys
  bool forms_ = false;  // all of it wait for all
  int64_t life_ = 0;    // lives of this worker in it before
  std::optional<std::vector<WorkerId>> founds_after_;
  int64_t seen_ = 0;      // changes
  Members known_;         // as read last
  int64_t news_ = 0;      // heard
  int64_t roll_ = 0;      // answered
  int64_t refusals_ = 0;  // told
};

}  // namespace rehearsal::real
