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

void NameLookup::find(const Address& address, Done done) {
  if (is_numeric(address.host)) return done(Addresses{address});
  const auto known = waiting_.find(address.host);
  if (known != waiting_.end()) return known->second.push_back({address.port, std::move(done)});
  if (waiting_.size() >= kNamesMax)
    return done(
        Error{.kind = ErrorKind::overloaded,
              .text = "too many names are looked up at once, among them '" + address.host + "'"});
  waiting_[address.host].push_back({address.port, std::move(done)});
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
  for (const Waiter& waiter : node.mapped()) {
    Result<Addresses> own = result;
    if (own.ok())
      for (Address& one : own.value()) one.port = waiter.port;
    waiter.done(own);
  }
}

}  // namespace rehearsal::real
