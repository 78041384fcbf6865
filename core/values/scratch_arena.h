#pragma once

#include <google/protobuf/arena.h>

#include <array>
#include <cstddef>

namespace rehearsal {

// Where the protobuf messages live that one encode or decode needs: all parts of some ordinary
// messages fit into its block, so that these cost no allocations. Belongs to one codec, and lends
// one message at a time.
class ScratchArena {
 public:
  ScratchArena() {}  // leaves the block as it is: a default one would be cleared with its codec
  ScratchArena(const ScratchArena&) = delete;

  // An empty message, until the end of the scope.
  template <class WireMessage>
  class Lent {
   public:
    explicit Lent(ScratchArena& from)
        : from_(from),
          message_(*google::protobuf::Arena::CreateMessage<WireMessage>(&from.arena_)) {}
    ~Lent() { from_.recycle(); }
    Lent(const Lent&) = delete;

    [[nodiscard]] WireMessage& operator*() const { return message_; }
    [[nodiscard]] WireMessage* operator->() const { return &message_; }

   private:
    ScratchArena& from_;
    WireMessage& message_;
  };

 private:
  static constexpr size_t kBlockBytes = 16 * 1024;

  // Emptying it costs about as much as reading an ordinary message, and so waits for a while.
  void recycle() {
    if (arena_.SpaceUsed() > kBlockBytes / 2) arena_.Reset();
  }

  alignas(std::max_align_t) std::array<char, kBlockBytes> block_;
  google::protobuf::Arena arena_{block_.data(), block_.size()};
};

}  // namespace rehearsal
