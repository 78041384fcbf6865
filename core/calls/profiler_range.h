#pragma once

#include <memory>
#include <string>

namespace rehearsal {

// A range of LibTorch's profiler on the calling stack, for as long as it lives. It costs a look if
// nobody profiles: nobody has callbacks for functions (at::RecordFunction) on this thread or
// globally. It may live across a park: LibTorch's thread-local state moves with the stack.
class ProfilerRange {
 public:
  // `name` makes a text; it is asked only if somebody profiles.
  template <class F>
  explicit ProfilerRange(const F& name) {
    if (somebody_profiles()) begin(name());
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  struct Open;
  struct Close {
    void operator()(Open* open) const;
  };

  [[nodiscard]] static bool somebody_profiles();
  void begin(const std::string& name);

  std::unique_ptr<Open, Close> open_;  // null: nobody profiles
};

}  // namespace rehearsal
