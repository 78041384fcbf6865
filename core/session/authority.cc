#include "core/session/authority.h"

#include <algorithm>
#include <functional>
#include <variant>

#include "core/base/short_text.h"

namespace rehearsal {
namespace {

constexpr std::string_view kNotItsOwn = "is no id that its sender has made";
constexpr std::string_view kNotMadeHere = "is no id that its receiver has made";
constexpr std::string_view kNoWorker = "names a worker that does not exist";
constexpr std::string_view kNotOwnedHere = "is a reference to a value of another worker";

class Judge {
 public:
  Judge(const Pair& pair, const SessionOptions& options)
      : pair_(pair), options_(options), workers_(options.names.size()) {}

  void operator()(const std::monostate&) {}

  void operator()(const Call& call) {
    demand(is_senders(call.id), "Call.id", kNotItsOwn);
    judge_forks(call.arguments, "Call.forks");
    demand(call.depth < kCallDepthMax, "Call.depth", "is deeper than calls can be nested");
    demand(call.name.size() <= kOperatorNameMax, "Call.name", "is longer than a name can be");
    if (call.target) demand(call.target->owner == pair_.self, "Call.target", kNotOwnedHere);
    if (call.created) judge_creation(call);
    if (call.context) {
      demand(exists(call.context->creator), "Call.context_creator", kNoWorker);
      demand(is_made_by(call.context->id, call.context->creator), "Call.context_creator",
             "is not the worker that has made the context");
    }
    if (call.order) demand(is_senders(*call.order), "Call.order", kNotItsOwn);
    demand(call.failure.size() <= kErrorTextMax, "Call.failure", "is longer than a text can be");
    if (!call.autograd) return;
    judge_record(*call.autograd, "Call.autograd");
    demand(call.context && call.context->id == call.autograd->context, "Call.autograd",
           "is of another context than the call");
  }

  void operator()(const Response& response) {
    demand(is_receivers(response.id), "Response.id", kNotMadeHere);
    judge_forks(response.value, "Response.forks");
    if (response.autograd) judge_record(*response.autograd, "Response.autograd");
  }

  void operator()(const Cancel& cancel) { demand(is_senders(cancel.id), "Cancel.id", kNotItsOwn); }

  void operator()(const Item& item) {
    demand(is_receivers(item.call), "Item.call", kNotMadeHere);
    judge_forks(item.value, "Item.value");
    if (item.autograd) judge_record(*item.autograd, "Item.autograd");
  }

  void operator()(const Credit& credit) {
    demand(is_senders(credit.call), "Credit.call", kNotItsOwn);
  }

  void operator()(const End& end) {
    demand(is_receivers(end.call), "End.call", kNotMadeHere);
    judge_forks(end.value, "End.value");
  }

  void operator()(const ForkRequest& request) {
    demand(is_owned_here(request.rref), "ForkRequest.rref", kNotOwnedHere);
    demand(!is_receivers(request.fork), "ForkRequest.fork", "is a fork that its receiver has made");
  }

  void operator()(const ForkConfirm&) {}

  void operator()(const ChildAccept& accept) {
    demand(is_receivers(accept.fork), "ChildAccept.fork", kNotMadeHere);
  }

  void operator()(const UserDelete& user_delete) {
    demand(is_owned_here(user_delete.rref), "UserDelete.rref", kNotOwnedHere);
  }

  void operator()(const ContextReached& reached) {
    demand(is_receivers(reached.context), "ContextReached.context", kNotMadeHere);
  }

  void operator()(const ContextRelease& release) {
    demand(is_senders(release.context) || options_.mutants.on(Mutant::contexts_released_by_relays),
           "ContextRelease.context", kNotItsOwn);
  }

  void operator()(const Gradients& gradients) {
    judge_pass(gradients.pass, "Gradients.pass");
    demand(gradients.gradients.forks.empty(), "Gradients.gradients", "carries references");
    if (gradients.autograd)
      demand(exists(gradients.autograd->creator), "Gradients.autograd", kNoWorker);
    demand(ascends(gradients.unreached), "Gradients.unreached", "names a tensor twice");
  }

  void operator()(const GradientsAnswered& answered) {
    judge_pass(answered.pass, "GradientsAnswered.pass");
  }
  void operator()(const PassFinish& finish) { judge_pass(finish.pass, "PassFinish.pass"); }
  void operator()(const PassFinished& finished) { judge_pass(finished.pass, "PassFinished.pass"); }
  void operator()(const PassFailed& failed) { judge_pass(failed.pass, "PassFailed.pass"); }
  void operator()(const Marks& marks) {
    judge_pass(marks.pass, "Marks.pass");
    for (const Mark& mark : marks.marks)
      demand(ascends(mark.tensors), "Marks.marks", "names a tensor twice");
  }
  void operator()(const MarksAnswered& answered) {
    judge_pass(answered.pass, "MarksAnswered.pass");
  }

  void operator()(const Ready& ready) {
    demand(ready.round == 0, "Ready.round", "is a round that nobody has begun");
  }

  void operator()(const ShutdownReport& report) {
    demand(report.phase < kPhaseMax, "ShutdownReport.phase", "is beyond all phases");
    for (const WorkerId lost : report.lost) demand(exists(lost), "ShutdownReport.lost", kNoWorker);
    demand(ascends(report.lost), "ShutdownReport.lost", "is not in rank order");
  }

  void operator()(const ShutdownProbe& probe) {
    demand(probe.phase < kPhaseMax, "ShutdownProbe.phase", "is beyond all phases");
    demand(pair_.from < pair_.self, "ShutdownProbe", "comes from a worker that cannot coordinate");
  }

  void operator()(const Leave&) {}
  void operator()(const Goodbye&) {}

  void operator()(const GroupView& view) {
    for (const MetMember& other : view.met) {
      demand(exists(other.worker), "GroupView.met", kNoWorker);
      demand(other.worker != pair_.self, "GroupView.met", "names its receiver");
      demand(other.worker != pair_.from, "GroupView.met", "names its sender");
      demand(other.life < kLivesMax, "GroupView.met", "names a life that no worker has");
    }
    demand(ascends(view.met), "GroupView.met", "is not in rank order");
  }

  // The loans are looked up where they are known.
  void operator()(const LoansReturned& returned) {
    demand(ascends(returned.loans), "LoansReturned.loans", "names a loan twice");
  }

  void operator()(const Leaving&) {}
  void operator()(const NothingMore&) {}

  [[nodiscard]] const std::optional<Violation>& found() const { return found_; }

 private:
  void demand(bool holds, std::string_view field, std::string_view why) {
    if (!holds && !found_) [[unlikely]]
      found_ = Violation{field, why};
  }

  [[nodiscard]] bool exists(WorkerId worker) const { return worker.value < workers_; }
  [[nodiscard]] bool is_senders(const CausalId& id) const { return id.incarnation == pair_.sender; }
  [[nodiscard]] bool is_receivers(const CausalId& id) const {
    return id.incarnation == pair_.receiver;
  }
  [[nodiscard]] bool is_owned_here(const RRefId& id) const {
    return id.owner == pair_.self && id.owner_incarnation == pair_.receiver;
  }
  // As far as the two lives know that talk here.
  [[nodiscard]] bool is_made_by(const CausalId& id, WorkerId maker) const {
    if (is_receivers(id)) return maker == pair_.self;
    return !is_senders(id) || maker == pair_.from;
  }

  template <class T>
  static bool ascends(const std::vector<T>& all) {
    return std::adjacent_find(all.begin(), all.end(), std::greater_equal<>()) == all.end();
  }

  // The sender of a reference has made its fork, also where it owns the value.
  void judge_forks(const Payload& payload, std::string_view field) {
    for (const Fork& fork : payload.forks) {
      demand(exists(fork.rref.owner), field, kNoWorker);
      demand(is_senders(fork.id), field, "has a fork that its sender has not made");
      demand(!fork.owner_is_parent ||
                 (fork.rref.owner == pair_.from && fork.rref.owner_incarnation == pair_.sender),
             field, "has a fork of an owner that does not own the value");
    }
  }

  void judge_creation(const Call& call) {
    demand(is_owned_here(*call.created), "Call.created", kNotOwnedHere);
    demand(is_senders(call.created->causal), "Call.created", kNotItsOwn);
    demand(is_senders(call.created_fork), "Call.created_fork", kNotItsOwn);
    if (!call.target || call.target->causal.incarnation != pair_.sender) return;
    demand(call.target->counter < call.created->counter, "Call.target",
           "is created after what is made of it");
  }

  void judge_record(const AutogradMetadata& record, std::string_view field) {
    demand(exists(record.creator), field, kNoWorker);
    demand(is_senders(record.message), field, kNotItsOwn);
  }

  // It may be told by somebody whom its sender believes: the worker and life of its starter are
  // compared where the pass is joined.
  void judge_pass(const PassName& pass, std::string_view field) {
    demand(exists(pass.starter) && exists(pass.context_creator), field, kNoWorker);
    demand(pass.id.epoch > 0 && pass.settled <= pass.id.epoch &&
               std::all_of(pass.taken_back.begin(), pass.taken_back.end(),
                           [&pass](uint64_t epoch) { return epoch < pass.id.epoch; }),
           field, "says that later passes have ended");
    demand(pass.taken_back.size() <= kTakenBackMax, field,
           "takes back more passes than a starter does");
  }

  const Pair pair_;
  const SessionOptions& options_;
  const size_t workers_;
  std::optional<Violation> found_;
};

}  // namespace

std::optional<Violation> violation_of(const Message& message, const Pair& pair,
                                      const SessionOptions& options) {
  Judge judge(pair, options);
  std::visit(judge, message.content);
  return judge.found();
}

}  // namespace rehearsal
