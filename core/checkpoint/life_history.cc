#include "core/checkpoint/life_history.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "core/checkpoint/checkpoint_head.h"
#include "core/checkpoint/kept_pieces.h"
#include "core/checkpoint/plain_pickle.h"

namespace rehearsal {
namespace {

constexpr const char* kFile = "ended-lives";
constexpr size_t kLivesKept = 100;

c10::IValue as_value(const std::vector<EndedLife>& lives) {
  c10::impl::GenericList list(c10::AnyType::get());
  for (const EndedLife& ended : lives) {
    c10::impl::GenericDict entry = any_dictionary();
    entry.insert("life", static_cast<int64_t>(ended.life));
    entry.insert("lost", ended.lost);
    entry.insert("why", ended.why);
    list.emplace_back(entry);
  }
  return list;
}

Result<std::vector<EndedLife>> lives_in(const std::optional<std::string>& bytes) {
  std::vector<EndedLife> lives;
  if (!bytes) return lives;
  try {
    const c10::impl::GenericList entries = unpickle(*bytes).toList();
    for (size_t i = 0; i < entries.size(); ++i) {
      const c10::impl::GenericDict fields = entries.get(i).toGenericDict();
      lives.push_back({.life = static_cast<uint32_t>(fields.at("life").toInt()),
                       .lost = fields.at("lost").toStringRef(),
                       .why = fields.at("why").toStringRef()});
    }
  } catch (const std::exception& error) {
    return Error{.kind = ErrorKind::storage,
                 .text = std::string("'") + kFile + "' cannot be read: " + in_one_line(error)};
  }
  return lives;
}

}  // namespace

bool is_recoverable(ErrorKind kind) {
  using enum ErrorKind;
  constexpr ErrorKind kinds[] = {timeout,      peer_lost,    fenced,  cancelled,
                                 node_stopped, rref_deleted, autograd};
  return std::find(std::begin(kinds), std::end(kinds), kind) != std::end(kinds);
}

std::vector<EndedLife> ended_lives(const WorkerAccess& worker) {
  if (worker.caller()->checkpoints() == nullptr) return {};
  return lives_in(load_piece(*worker.caller(), kFile)).or_throw();
}

Status add_ended_life(Checkpoints& disk, const EndedLife& ended) {
  Result<std::optional<std::string>> saved = disk.load(kFile);
  if (!saved.ok()) return saved.error();
  Result<std::vector<EndedLife>> known = lives_in(saved.value());
  std::vector<EndedLife> lives = known.ok() ? std::move(known).value() : std::vector<EndedLife>();
  if (lives.size() >= kLivesKept) lives.erase(lives.begin());
  lives.push_back(ended);
  return disk.save(kFile, plain_pickle(as_value(lives)));
}

}  // namespace rehearsal
