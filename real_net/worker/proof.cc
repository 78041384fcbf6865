#include "real_net/worker/proof.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>
#include <vector>

#include "real_net/tcp/host_addresses.h"
#include "real_net/tcp/own_addresses.h"
#include "real_net/tcp/socket.h"
#include "real_net/worker/bounded.h"

namespace rehearsal::real {
namespace {

// A name that takes longer to look up is that of another machine.
constexpr auto kLookUpLimit = std::chrono::seconds(10);

bool is_hidden(const Address& named) {
  if (is_loopback(named.host)) return true;
  const std::function<bool()> work = [named] {
    return stays_on_this_machine(named, /*for_others=*/false);
  };
  return within(std::chrono::steady_clock::now() + kLookUpLimit, work).value_or(false);
}

// Where this worker serves the store, if it does: at the socket that it was given, too.
std::vector<Address> served_at(const Placement& placement) {
  if (placement.rank != 0 || !placement.file.empty() || placement.agent_serves) return {};
  std::vector<Address> places = {placement.master};
  if (!placement.listening) return places;
  const Result<FileDescriptor> socket = listening_socket(*placement.listening);
  if (socket.ok()) places.push_back(local_address(socket.value()));
  return places;
}

}  // namespace

Result<Auth> choose_auth(const std::string& text, const Environment& environment) {
  return parse_auth(text.empty() ? environment("REHEARSAL_AUTH").value_or("") : text, environment);
}

Status check_exposure(const Auth& auth, const Placement& placement, const Address& listen,
                      const std::optional<Address>& advertise) {
  if (auth.kind != Auth::Kind::unsaid) return Unit{};
  std::vector<Address> reached = {listen};
  if (advertise) reached.push_back(*advertise);
  for (Address& one : served_at(placement)) reached.push_back(std::move(one));
  const auto exposed = std::find_if_not(reached.begin(), reached.end(), is_hidden);
  if (exposed == reached.end()) return Unit{};
  return Error{.kind = ErrorKind::bad_arguments,
               .text = "others than this machine can reach this worker, at " + to_string(*exposed) +
                       ": give the group a secret (REHEARSAL_AUTH or --auth secret:file=PATH, " +
                       "made by openssl rand -hex 32), or say --auth none if nobody else is in " +
                       "its network"};
}

}  // namespace rehearsal::real
