#include "real_net/tcp/name_lookup.h"

#include <system_error>
#include <thread>

namespace rehearsal::real {
namespace {

constexpr size_t kNamesMax = 16;

}  // namespace

NameLookup::NameLookup(Runtime& runtime, Resolve resolve)
    : runtime_(runtime), resolve_(std::move(resolve)), home_(std::make_shared<Home>()) {
  home_->lookup = this;
}

NameLookup::~NameLookup() {
  const std::lock_guard lock(home_->mutex);
  home_->lookup = nullptr;
}

// Whether this peer has a name looked up: then this question takes the place of that one, or waits.
bool NameLookup::takes_turns(WorkerId peer, const Address& address, Done& done) {
  for (auto& [host, questions] : waiting_) {
    const auto own = questions.find(peer);
    if (own == questions.end()) continue;
    (host == address.host ? own->second : later_[peer]) = {address, std::move(done)};
    return true;
  }
  return false;
}

void NameLookup::find(WorkerId peer, const Address& address, Done done) {
  later_.erase(peer);
  if (is_numeric(address.host)) return done(Addresses{address});
  if (takes_turns(peer, address, done)) return;
  const auto known = waiting_.find(address.host);
  if (known != waiting_.end()) {
    known->second[peer] = {address, std::move(done)};
    return;
  }
  if (waiting_.size() >= kNamesMax)
    return done(
        Error{.kind = ErrorKind::overloaded,
              .text = "too many names are looked up at once, among them '" + address.host + "'"});
  waiting_[address.host][peer] = {address, std::move(done)};
  const auto work = [home = home_, resolve = resolve_, address] {
    const Result<Addresses> result = resolve(address);
    const std::lock_guard lock(home->mutex);
    if (home->lookup == nullptr) return;
    home->lookup.load()->runtime_.post([home, host = address.host, result] {
      if (NameLookup* lookup = home->lookup) lookup->found(host, result);
    });
  };
  try {
    std::thread(work).detach();
  } catch (const std::system_error& error) {
    found(address.host, Error{.kind = ErrorKind::overloaded, .text = error.what()});
  }
}

void NameLookup::found(const std::string& host, const Result<Addresses>& result) {
  const auto node = waiting_.extract(host);
  for (const auto& [peer, question] : node.mapped()) {
    Result<Addresses> own = result;
    if (own.ok())
      for (Address& one : own.value()) one.port = question.address.port;
    question.done(own);
  }
  for (const auto& [peer, question] : node.mapped())
    if (auto next = later_.extract(peer))
      find(peer, next.mapped().address, std::move(next.mapped().done));
}

}  // namespace rehearsal::real
