#include "sim/world/message_fields.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base/check.h"

namespace rehearsal::sim {
namespace {

// A list is made no longer than this.
constexpr uint64_t kElementsMax = 3;

class Lister {
 public:
  explicit Lister(std::vector<MessageField>& fields) : fields_(fields) {}

  void list(const std::string& name, Message& message) {
    std::visit([&](auto& content) { walk(name, content); }, message.content);
  }

 private:
  // ---- leaves ----

  void add(std::string name, uint64_t max, std::function<uint64_t()> get,
           std::function<void(uint64_t)> set) {
    fields_.push_back({std::move(name), max, std::move(get), std::move(set)});
  }
  template <class T>
  void number(const std::string& name, T& value, uint64_t max = std::numeric_limits<T>::max()) {
    add(
        name, max, [&value] { return static_cast<uint64_t>(value); },
        [&value, max](uint64_t given) { value = static_cast<T>(std::min(given, max)); });
  }
  void walk(const std::string& name, uint64_t& value) { number(name, value); }
  void walk(const std::string& name, uint32_t& value) { number(name, value); }
  void walk(const std::string& name, bool& value) { number(name, value, 1); }
  void walk(const std::string& name, CallKind& value) { number(name, value, 3); }
  void walk(const std::string& name, PassMode& value) { number(name, value, 1); }
  void walk(const std::string& name, PassWave& value) { number(name, value, kPassWaves - 1); }
  void walk(const std::string& name, ErrorKind& value) {
    number(name, value, static_cast<uint64_t>(kLastErrorKind));
  }
  void walk(const std::string& name, Duration& value) {
    add(
        name, std::numeric_limits<int64_t>::max(),
        [&value] { return static_cast<uint64_t>(value.count()); },
        [&value](uint64_t given) {
          value = Duration(std::min<uint64_t>(given, std::numeric_limits<int64_t>::max()));
        });
  }
  template <class Tag, class T>
  void walk(const std::string& name, Id<Tag, T>& id) {
    number(name, id.value);
  }

  // ---- parts ----

  void walk(const std::string& name, Hash128& hash) {
    number(name + "_high", hash.high);
    number(name + "_low", hash.low);
  }
  void walk(const std::string& name, CausalId& id) {
    walk(name + ".incarnation", id.incarnation);
    walk(name + ".path", id.path);
    walk(name + ".ordinal", id.ordinal);
  }
  void walk(const std::string& name, RRefId& id) {
    walk(name + ".causal", id.causal);
    walk(name + ".owner", id.owner);
    walk(name + ".counter", id.counter);
    walk(name + ".owner_incarnation", id.owner_incarnation);
  }
  void walk(const std::string& name, Fork& fork) {
    walk(name + ".rref", fork.rref);
    walk(name + ".fork", static_cast<CausalId&>(fork.id));
    walk(name + ".owner_is_parent", fork.owner_is_parent);
  }
  void walk(const std::string& name, Payload& payload) { walk(name + ".forks", payload.forks); }
  void walk(const std::string& name, AutogradMetadata& record) {
    walk(name + ".context", static_cast<CausalId&>(record.context));
    walk(name + ".message", static_cast<CausalId&>(record.message));
    walk(name + ".creator", record.creator);
  }
  void walk(const std::string& name, ContextName& context) {
    walk(name, static_cast<CausalId&>(context.id));
    walk(name + "_creator", context.creator);
  }
  void walk(const std::string&, TraceContext&) {}
  void walk(const std::string& name, Error& error) { walk(name + ".kind", error.kind); }
  void walk(const std::string& name, MaybeError& error) {
    add(
        name, 1, [&error] { return error ? 1 : 0; },
        [&error](uint64_t given) {
          if (given == 0) error.reset();
          if (given > 0 && !error) error = Error{.text = "it is said to have failed"};
        });
    if (error) walk(name, *error);
  }
  void walk(const std::string& name, PassName& pass) {
    walk(name + ".context", static_cast<CausalId&>(pass.id.context));
    walk(name + ".epoch", pass.id.epoch);
    walk(name + ".starter", pass.starter);
    walk(name + ".starter_incarnation", pass.id.starter_incarnation);
    walk(name + ".retain_graph", pass.retain_graph);
    walk(name + ".context_creator", pass.context_creator);
    walk(name + ".create_graph", pass.create_graph);
    walk(name + ".fast", pass.mode);
    walk(name + ".settled", pass.settled);
    walk(name + ".taken_back", pass.taken_back);
  }
  void walk(const std::string& name, Mark& mark) {
    walk(name + ".message", static_cast<CausalId&>(mark.message));
    walk(name + ".tensors", mark.tensors);
  }
  void walk(const std::string& name, MetMember& met) {
    walk(name + ".worker", met.worker);
    walk(name + ".life", met.life);
  }
  template <class T>
  void walk(const std::string& name, std::optional<T>& part) {
    add(
        name, 1, [&part] { return part ? 1 : 0; },
        [&part](uint64_t given) {
          if (given == 0) part.reset();
          if (given > 0 && !part) part.emplace();
        });
    if (part) walk(name, *part);
  }
  template <class T>
  void walk(const std::string& name, std::vector<T>& list) {
    add(
        name, kElementsMax, [&list] { return list.size(); },
        [&list](uint64_t given) {
          list.resize(std::min(given, kElementsMax), list.empty() ? T{} : list.back());
        });
    for (T& element : list) walk(name, element);
  }

  // ---- messages ----

  void walk(const std::string&, std::monostate&) {}
  void walk(const std::string& name, Call& call) {
    walk(name + ".id", static_cast<CausalId&>(call.id));
    walk(name + ".kind", call.kind);
    walk(name + ".function", call.function);
    walk(name + ".time_left", call.time_left);
    walk(name + ".depth", call.depth);
    walk(name + ".target", call.target);
    walk(name + ".created", call.created);
    if (call.created) walk(name + ".created_fork", static_cast<CausalId&>(call.created_fork));
    walk(name + ".autograd", call.autograd);
    walk(name + ".context", call.context);
    walk(name + ".credit", call.credit);
    walk(name + ".trace", call.trace);
    walk(name + ".stream", call.stream);
    walk(name + ".order", call.order);
    walk(name, call.arguments);
  }
  void walk(const std::string& name, Response& response) {
    walk(name + ".id", static_cast<CausalId&>(response.id));
    walk(name + ".error", response.error);
    walk(name + ".autograd", response.autograd);
    if (response.error) walk(name + ".exception", response.exception);
    walk(name, response.value);
  }
  void walk(const std::string& name, Cancel& cancel) {
    walk(name + ".id", static_cast<CausalId&>(cancel.id));
  }
  void walk(const std::string& name, Item& item) {
    walk(name + ".call", static_cast<CausalId&>(item.call));
    walk(name + ".position", item.position);
    walk(name + ".value", item.value);
    walk(name + ".error", item.error);
    walk(name + ".autograd", item.autograd);
  }
  void walk(const std::string& name, Credit& credit) {
    walk(name + ".call", static_cast<CausalId&>(credit.call));
    walk(name + ".items", credit.items);
  }
  void walk(const std::string& name, End& end) {
    walk(name + ".call", static_cast<CausalId&>(end.call));
    walk(name + ".items", end.items);
    walk(name + ".error", end.error);
    if (!end.error) return;
    walk(name + ".value", end.value);
    walk(name + ".exception", end.exception);
  }
  void walk(const std::string& name, ForkRequest& request) {
    walk(name + ".rref", request.rref);
    walk(name + ".fork", static_cast<CausalId&>(request.fork));
  }
  void walk(const std::string& name, ForkConfirm& confirm) {
    walk(name + ".fork", static_cast<CausalId&>(confirm.fork));
    walk(name + ".error", confirm.error);
  }
  void walk(const std::string& name, ChildAccept& accept) {
    walk(name + ".fork", static_cast<CausalId&>(accept.fork));
  }
  void walk(const std::string& name, UserDelete& user_delete) {
    walk(name + ".rref", user_delete.rref);
    walk(name + ".fork", static_cast<CausalId&>(user_delete.fork));
  }
  void walk(const std::string& name, ContextReached& reached) {
    walk(name + ".context", static_cast<CausalId&>(reached.context));
  }
  void walk(const std::string& name, ContextRelease& release) {
    walk(name + ".context", static_cast<CausalId&>(release.context));
  }
  void walk(const std::string& name, Gradients& gradients) {
    walk(name + ".pass", gradients.pass);
    walk(name + ".message", static_cast<CausalId&>(gradients.message));
    walk(name + ".gradients", gradients.gradients);
    walk(name + ".autograd", gradients.autograd);
    walk(name + ".unreached", gradients.unreached);
  }
  void walk(const std::string& name, GradientsAnswered& answered) {
    walk(name + ".pass", answered.pass);
    walk(name + ".message", static_cast<CausalId&>(answered.message));
  }
  void walk(const std::string& name, PassFinish& finish) {
    walk(name + ".pass", finish.pass);
    walk(name + ".wave", finish.wave);
  }
  void walk(const std::string& name, PassFinished& finished) {
    walk(name + ".pass", finished.pass);
    walk(name + ".error", finished.error);
    walk(name + ".undecided", finished.undecided);
  }
  void walk(const std::string& name, PassFailed& failed) {
    walk(name + ".pass", failed.pass);
    walk(name + ".error", failed.error);
  }
  void walk(const std::string& name, Marks& marks) {
    walk(name + ".pass", marks.pass);
    walk(name + ".marks", marks.marks);
  }
  void walk(const std::string& name, MarksAnswered& answered) {
    walk(name + ".pass", answered.pass);
  }
  void walk(const std::string& name, Ready& ready) { walk(name + ".round", ready.round); }
  void walk(const std::string& name, ShutdownProbe& probe) {
    walk(name + ".phase", probe.phase);
    walk(name + ".wave", probe.wave);
  }
  void walk(const std::string& name, ShutdownReport& report) {
    walk(name + ".phase", report.phase);
    walk(name + ".wave", report.wave);
    walk(name + ".quiet", report.quiet);
    walk(name + ".lost", report.lost);
    walk(name + ".activity", report.activity);
    walk(name + ".all_arrived", report.all_arrived);
    walk(name + ".lives", report.lives);
  }
  void walk(const std::string& name, Leave& leave) { walk(name + ".graceful", leave.graceful); }
  void walk(const std::string& name, Goodbye& goodbye) { walk(name + ".error", goodbye.error); }
  void walk(const std::string& name, GroupView& view) {
    walk(name + ".member", view.member);
    walk(name + ".met", view.met);
  }
  void walk(const std::string&, Leaving&) {}
  void walk(const std::string&, NothingMore&) {}
  void walk(const std::string& name, LoansReturned& returned) {
    walk(name + ".loans", returned.loans);
  }

  std::vector<MessageField>& fields_;
};

template <size_t... type>
Message empty_message(uint32_t wanted, std::index_sequence<type...>) {
  Message message;
  ((type == wanted ? static_cast<void>(message.content.emplace<type>()) : void()), ...);
  return message;
}

}  // namespace

std::vector<MessageField> fields_of(Message& message) {
  std::vector<MessageField> fields;
  Lister(fields).list(std::string(message_name(message.type())), message);
  return fields;
}

Message empty_message(uint32_t type) {
  REHEARSAL_CHECK(type > 0, type);
  REHEARSAL_CHECK(type <= kMessageTypes, type);
  Message message = empty_message(type, std::make_index_sequence<kMessageTypes + 1>());
  if (auto* marks = std::get_if<Marks>(&message.content)) marks->marks = {{{}, {0}}};
  return message;
}

}  // namespace rehearsal::sim
