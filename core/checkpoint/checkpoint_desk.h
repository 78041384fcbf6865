#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/api/checkpoint_parts.h"
#include "core/api/worker_access.h"
#include "core/checkpoint/checkpoint_head.h"

namespace rehearsal {

// The worker that has a piece.
struct CheckpointPlace {
  std::string piece;
  std::string holder;
  friend void describe(CheckpointPlace& place, auto&& fields) { fields(place.piece, place.holder); }
};

// The answer of a worker that is asked what it has.
struct HeldCheckpoints {
  uint64_t run = 0;         // of the latest run that it has heard of in this life
  CheckpointTag committed;  // run zero: none
  std::vector<CheckpointCopy> copies;
  friend void describe(HeldCheckpoints& held, auto&& fields) {
    fields(held.run, held.committed, held.copies);
  }
};

// The beginning of a run: what it goes on from.
struct CheckpointOpening {
  std::string name;
  uint64_t run = 0;
  CheckpointTag from;                      // run zero: nothing
  std::vector<CheckpointPlace> directory;  // of all pieces of `from`
  friend void describe(CheckpointOpening& opening, auto&& fields) {
    fields(opening.name, opening.run, opening.from, opening.directory);
  }
};

// A worker's part in all checkpoints: one of its states (Program::state). Its methods are called in
// the state's monitor. None parks; those that are given the worker block while the disk works.
// Those that are given an order throw RpcError (cancelled) for one of an earlier run.
//
// The worker that orders something may be mad: of each worker that begins runs a desk remembers
// kBooksMax names of checkpoints, and directories of kDirectoryBytesMax in all, and refuses more
// (overloaded).
class CheckpointDesk {
 public:
  static constexpr size_t kBooksMax = 256;
  static constexpr uint64_t kDirectoryBytesMax = uint64_t{64} << 20;

  // ---- a new run ----

  [[nodiscard]] HeldCheckpoints held(const WorkerAccess& here, const std::string& name);
  // Reads this worker's part of the cut that the run goes on from; `opener` begins the run. Throws
  // RpcError (storage).
  void open(const WorkerAccess& here, const std::string& opener, const CheckpointOpening& opening);
  // Whether it goes on from a cut, and not from the beginning.
  [[nodiscard]] bool goes_on(const CheckpointOrder& order) const;
  // A piece of that part; none if it is not here.
  [[nodiscard]] std::optional<c10::IValue> piece_here(const CheckpointOrder& order,
                                                      const std::string& piece);
  // The worker that has it; empty: none.
  [[nodiscard]] std::string holder_of(const CheckpointOrder& order, const std::string& piece);
  // Everybody has what it needs of that part.
  void close(const CheckpointOrder& order);

  // ---- names, for this run ----

  // Throws RpcError (bad_arguments) if something else has this name.
  void name_tensor(const CheckpointOrder& order, const std::string& name, const at::Tensor& tensor);
  // Throws RpcError (bad_arguments) for a tensor without a name; `user` is who needs it.
  [[nodiscard]] const std::string& name_of(const CheckpointOrder& order, const at::Tensor& tensor,
                                           const std::string& user) const;

  // ---- a new cut ----

  // Keeps a piece until it is written, in place of what was kept for an earlier cut. `make` is
  // called when it is written. Throws RpcError (bad_arguments) if the cut has a piece of this name.
  void keep(const CheckpointOrder& order, const std::string& piece,
            std::function<c10::IValue()> make);
  void keep_copy(const CheckpointOrder& order, const std::string& piece, const at::Tensor& tensor);
  // Writes what is kept; nothing if it has been written. `committed` is a cut that all have.
  void write(const WorkerAccess& here, const CheckpointOrder& order,
             const std::vector<std::string>& holders, const CheckpointTag& committed);
  // All have this cut.
  void commit(const WorkerAccess& here, const CheckpointOrder& order);

 private:
  struct Book {
    CheckpointHead head;
    uint64_t run = 0;
    std::string opener;  // of that run
    bool goes_on = false;
    std::map<std::string, at::Tensor> tensors;  // by name
    std::map<const void*, std::string> names;   // of these tensors; look-up only
    std::map<std::string, std::string> directory;
    std::optional<c10::impl::GenericDict> opened;  // the pieces of the part that is gone on from
    CheckpointTag kept_for;
    std::map<std::string, std::function<c10::IValue()>> kept;
  };
  Book& book(const WorkerAccess& here, const std::string& name);
  void check_opener(const WorkerAccess& here, const std::string& opener,
                    const CheckpointOpening& opening) const;
  [[nodiscard]] const Book& book(const CheckpointOrder& order) const;
  [[nodiscard]] Book& book(const CheckpointOrder& order);
  static void write_head(const WorkerAccess& here, const std::string& name, const Book& book);

  std::map<std::string, Book> books_;
};

// Pieces by their names, from whatever worker has them. Parks. Throws RpcError: of kind storage for
// one that nobody has.
[[nodiscard]] std::vector<c10::IValue> find_pieces(const WorkerAccess& here,
                                                   const CheckpointOrder& order,
                                                   const std::vector<std::string>& pieces);

// Runs `body(CheckpointDesk&)` in the desk's monitor. Parks.
template <class Body>
auto at_desk(const WorkerAccess& here, Body body) {
  return here.with_state<CheckpointDesk>(std::move(body));
}

// Throws it as this worker's.
[[noreturn]] void fail_checkpoint(ErrorKind kind, const std::string& text,
                                  const std::string& worker = {});

}  // namespace rehearsal
