#include "core/wire/message.h"

#include <array>

namespace rehearsal {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<MessageContent>> kNames = {
    "none",
    "Call",
    "Response",
    "Cancel",
    "Item",
    "Credit",
    "End",
    "ForkRequest",
    "ForkConfirm",
    "ChildAccept",
    "UserDelete",
    "ContextReached",
    "ContextRelease",
    "Gradients",
    "GradientsAnswered",
    "PassFinish",
    "PassFinished",
    "PassFailed",
    "Ready",
    "ShutdownReport",
    "Leave",
    "Goodbye",
    "ShutdownProbe",
    "GroupView",
    "Leaving",
    "NothingMore",
    "Marks",
    "MarksAnswered",
    "LoansReturned"};

struct IdOf {
  CausalId operator()(const Call& call) const { return call.id; }
  CausalId operator()(const Response& response) const { return response.id; }
  CausalId operator()(const Cancel& cancel) const { return cancel.id; }
  CausalId operator()(const Item& item) const { return item.call; }
  CausalId operator()(const Credit& credit) const { return credit.call; }
  CausalId operator()(const End& end) const { return end.call; }
  CausalId operator()(const ForkRequest& request) const { return request.fork; }
  CausalId operator()(const ForkConfirm& confirm) const { return confirm.fork; }
  CausalId operator()(const ChildAccept& accept) const { return accept.fork; }
  CausalId operator()(const UserDelete& user_delete) const { return user_delete.fork; }
  CausalId operator()(const ContextReached& reached) const { return reached.context; }
  CausalId operator()(const ContextRelease& release) const { return release.context; }
  CausalId operator()(const Gradients& gradients) const { return gradients.message; }
  CausalId operator()(const GradientsAnswered& answered) const { return answered.message; }
  CausalId operator()(const Marks& marks) const { return marks.marks.front().message; }
  CausalId operator()(const MarksAnswered& answered) const { return answered.pass.id.context; }
  CausalId operator()(const PassFinish& finish) const { return finish.pass.id.context; }
  CausalId operator()(const PassFinished& finished) const { return finished.pass.id.context; }
  CausalId operator()(const PassFailed& failed) const { return failed.pass.id.context; }
  template <class Other>
  CausalId operator()(const Other&) const {
    return {};
  }
};

}  // namespace

bool is_of_group(const Message& message) {
  const MessageContent& content = message.content;
  return std::holds_alternative<Ready>(content) ||
         std::holds_alternative<ShutdownReport>(content) ||
         std::holds_alternative<ShutdownProbe>(content) || std::holds_alternative<Leave>(content) ||
         std::holds_alternative<Goodbye>(content) || std::holds_alternative<GroupView>(content) ||
         std::holds_alternative<Leaving>(content) || std::holds_alternative<NothingMore>(content);
}

std::string_view message_name(uint32_t type) { return type < kNames.size() ? kNames[type] : "?"; }

CausalId causal_id_of(const Message& message) { return std::visit(IdOf{}, message.content); }

}  // namespace rehearsal
