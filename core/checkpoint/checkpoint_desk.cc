#include "core/checkpoint/checkpoint_desk.h"

#include <ATen/core/Dict.h>

#include <algorithm>
#include <exception>

#include "core/checkpoint/kept_pieces.h"
#include "core/checkpoint/plain_pickle.h"

namespace rehearsal {
namespace {

std::string head_file(const std::string& name) { return name + ".head"; }
std::string slot_file(const std::string& name, size_t slot) {
  return name + "." + std::to_string(slot);
}

// The value that was saved there, if any.
std::optional<c10::IValue> read_piece(const WorkerAccess& here, const std::string& file) {
  const std::optional<std::string> bytes = load_piece(*here.caller(), file);
  if (!bytes) return std::nullopt;
  try {
    return unpickle(*bytes);
  } catch (const std::exception& error) {
    fail_checkpoint(ErrorKind::storage, "'" + file + "' cannot be read: " + in_one_line(error),
                    here.name());
  }
}

// The pieces in a part of that cut; nothing if the value is none.
std::optional<c10::impl::GenericDict> pieces_in(const c10::IValue& saved,
                                                const CheckpointTag& tag) {
  try {
    const c10::impl::GenericDict content = saved.toGenericDict();
    if (tag_in(content) != tag) return std::nullopt;
    c10::impl::GenericDict pieces = any_dictionary();
    for (const auto& piece : content.at("pieces").toGenericDict())
      pieces.insert(piece.key().toStringRef(), piece.value());
    return pieces;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string in_words(const CheckpointTag& tag) { return "step " + std::to_string(tag.step); }

}  // namespace

void fail_checkpoint(ErrorKind kind, const std::string& text, const std::string& worker) {
  throw RpcError({.kind = kind, .text = "checkpoint: " + text, .worker = worker});
}

// ---- books ------------------------------------------------------------------------

CheckpointDesk::Book& CheckpointDesk::book(const WorkerAccess& here, const std::string& name) {
  if (const auto known = books_.find(name); known != books_.end()) return known->second;
  Book book;
  if (const std::optional<c10::IValue> saved = read_piece(here, head_file(name))) {
    try {
      book.head = checkpoint_head(*saved);
    } catch (const std::exception& error) {
      fail_checkpoint(ErrorKind::storage,
                      "'" + head_file(name) + "' is no head of one: " + in_one_line(error),
                      here.name());
    }
  }
  // Of a name that was only asked for the disk tells again.
  const auto is_asked_only = [](const auto& one) { return one.second.run == 0; };
  if (static_cast<size_t>(std::ranges::count_if(books_, is_asked_only)) >= kBooksMax)
    std::erase_if(books_, is_asked_only);
  return books_.emplace(name, std::move(book)).first->second;
}

// All that the opener's other runs have left here counts, too.
void CheckpointDesk::check_opener(const WorkerAccess& here, const std::string& opener,
                                  const CheckpointOpening& opening) const {
  constexpr uint64_t kEntryBytes = 128;
  uint64_t bytes = 0;
  size_t others = 0;
  for (const CheckpointPlace& place : opening.directory)
    bytes += place.piece.size() + place.holder.size() + kEntryBytes;
  for (const auto& [name, book] : books_) {
    if (name == opening.name || book.opener != opener) continue;
    ++others;
    for (const auto& [piece, holder] : book.directory)
      bytes += piece.size() + holder.size() + kEntryBytes;
  }
  if (others >= kBooksMax)
    fail_checkpoint(ErrorKind::overloaded,
                    "worker '" + opener + "' has begun runs of " + std::to_string(kBooksMax) +
                        " names at worker '" + here.name() + "', which remembers no more: '" +
                        opening.name + "' is refused",
                    here.name());
  if (bytes > kDirectoryBytesMax)
    fail_checkpoint(ErrorKind::overloaded,
                    "the directories of '" + opening.name + "' and of other runs that worker '" +
                        opener + "' has not closed at worker '" + here.name() + "' take " +
                        std::to_string(bytes) + " bytes, more than " +
                        std::to_string(kDirectoryBytesMax),
                    here.name());
}

const CheckpointDesk::Book& CheckpointDesk::book(const CheckpointOrder& order) const {
  const auto found = books_.find(order.name);
  if (found == books_.end() || found->second.run != order.tag.run || order.tag.run == 0)
    fail_checkpoint(ErrorKind::cancelled, "an order of an earlier run of '" + order.name +
                                              "' came after a later one had begun, and is void");
  return found->second;
}

CheckpointDesk::Book& CheckpointDesk::book(const CheckpointOrder& order) {
  return const_cast<Book&>(std::as_const(*this).book(order));
}

void CheckpointDesk::write_head(const WorkerAccess& here, const std::string& name,
                                const Book& book) {
  save_piece(*here.caller(), head_file(name), plain_pickle(to_ivalue(book.head)));
}

// ---- a new run --------------------------------------------------------------------

HeldCheckpoints CheckpointDesk::held(const WorkerAccess& here, const std::string& name) {
  const Book& book = this->book(here, name);
  HeldCheckpoints held{.run = book.run, .committed = book.head.committed, .copies = {}};
  for (const auto& slot : book.head.slots)
    if (slot) held.copies.push_back(*slot);
  return held;
}

void CheckpointDesk::open(const WorkerAccess& here, const std::string& opener,
                          const CheckpointOpening& opening) {
  Book& book = this->book(here, opening.name);
  if (opening.run <= book.run)
    fail_checkpoint(ErrorKind::cancelled, "a later run of '" + opening.name + "' has begun",
                    here.name());
  check_opener(here, opener, opening);
  std::optional<c10::impl::GenericDict> opened;
  if (const std::optional<size_t> slot = book.head.slot_of(opening.from)) {
    const std::string file = slot_file(opening.name, *slot);
    const std::optional<c10::IValue> saved = read_piece(here, file);
    if (saved) opened = pieces_in(*saved, opening.from);
    if (!opened)
      fail_checkpoint(
          ErrorKind::storage,
          "'" + file + "' is not the part of " + in_words(opening.from) + " that its head says",
          here.name());
  }
  book.run = opening.run;
  book.opener = opener;
  book.goes_on = opening.from.run > 0;
  book.tensors.clear();
  book.names.clear();
  book.kept.clear();
  book.opened = std::move(opened);
  book.head.committed = opening.from;
  book.directory.clear();
  for (const CheckpointPlace& place : opening.directory)
    book.directory.insert_or_assign(place.piece, place.holder);
}

bool CheckpointDesk::goes_on(const CheckpointOrder& order) const { return book(order).goes_on; }

std::optional<c10::IValue> CheckpointDesk::piece_here(const CheckpointOrder& order,
                                                      const std::string& piece) {
  const auto& opened = book(order).opened;
  if (!opened) return std::nullopt;
  const auto found = opened->find(piece);
  if (found == opened->end()) return std::nullopt;
  return found->value();
}

std::string CheckpointDesk::holder_of(const CheckpointOrder& order, const std::string& piece) {
  const auto& directory = book(order).directory;
  const auto found = directory.find(piece);
  return found == directory.end() ? std::string() : found->second;
}

void CheckpointDesk::close(const CheckpointOrder& order) {
  book(order).opened.reset();
  book(order).directory.clear();
}

// ---- names ------------------------------------------------------------------------

void CheckpointDesk::name_tensor(const CheckpointOrder& order, const std::string& name,
                                 const at::Tensor& tensor) {
  Book& book = this->book(order);
  const auto known = book.tensors.emplace(name, tensor).first;
  if (!known->second.is_same(tensor))
    fail_checkpoint(ErrorKind::bad_arguments, "two tensors are called '" + name + "'");
  book.names.emplace(tensor.unsafeGetTensorImpl(), name);
}

const std::string& CheckpointDesk::name_of(const CheckpointOrder& order, const at::Tensor& tensor,
                                           const std::string& user) const {
  const Book& book = this->book(order);
  const auto found = book.names.find(tensor.unsafeGetTensorImpl());
  if (found != book.names.end()) return found->second;
  std::string known;
  for (const auto& named : book.tensors) known += (known.empty() ? "" : ", ") + named.first;
  fail_checkpoint(ErrorKind::bad_arguments,
                  "a parameter of '" + user +
                      "' has no name: let a member save its module, or the tensor; named are: " +
                      (known.empty() ? "none" : known));
}

// ---- a new cut --------------------------------------------------------------------

void CheckpointDesk::keep(const CheckpointOrder& order, const std::string& piece,
                          std::function<c10::IValue()> make) {
  Book& book = this->book(order);
  if (book.kept_for != order.tag) book.kept.clear();
  book.kept_for = order.tag;
  if (!book.kept.emplace(piece, std::move(make)).second)
    fail_checkpoint(ErrorKind::bad_arguments, "two things are called '" + piece + "'");
}

void CheckpointDesk::keep_copy(const CheckpointOrder& order, const std::string& piece,
                               const at::Tensor& tensor) {
  keep(order, piece, [copy = detail::to_piece(tensor)] { return copy; });
}

void CheckpointDesk::write(const WorkerAccess& here, const CheckpointOrder& order,
                           const std::vector<std::string>& holders,
                           const CheckpointTag& committed) {
  Book& book = this->book(order);
  if (book.head.slot_of(order.tag)) return;
  book.head.committed = std::max(book.head.committed, committed);

  CheckpointCopy copy{.tag = order.tag, .holders = holders, .pieces = {}};
  c10::impl::GenericDict pieces = any_dictionary();
  if (book.kept_for == order.tag) {
    for (const auto& [name, make] : book.kept) {
      copy.pieces.push_back(name);
      pieces.insert(name, make());
    }
    book.kept.clear();
  }
  c10::impl::GenericDict content = any_dictionary();
  content.insert("run", static_cast<int64_t>(order.tag.run));
  content.insert("step", order.tag.step);
  content.insert("holders", list_of(holders));
  content.insert("pieces", pieces);

  const size_t slot = book.head.next_slot();
  save_piece(*here.caller(), slot_file(order.name, slot), plain_pickle(content));
  book.head.slots[slot] = std::move(copy);
  write_head(here, order.name, book);
}

void CheckpointDesk::commit(const WorkerAccess& here, const CheckpointOrder& order) {
  Book& book = this->book(order);
  if (book.head.committed >= order.tag) return;
  book.head.committed = order.tag;
  write_head(here, order.name, book);
}

}  // namespace rehearsal
