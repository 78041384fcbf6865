#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/api/call_context.h"
#include "core/api/calls.h"
#include "core/calls/served_calls.h"
#include "core/rref/rref_context.h"
#include "core/session/session.h"
#include "core/wire/protobuf_codec.h"
#include "tests/core/recording_trace.h"
#include "tests/core/scripted_network.h"
#include "tests/core/test_runtime.h"

namespace rehearsal::doubles {

// The options of a CallNode.
struct CallNodeOptions {
  SessionOptions session;
  ServedCallsOptions served{.execution_limit = 100, .queue_limit = 100};
  Duration rpc_timeout = std::chrono::seconds(60);
  bool exception_traces = false;
};

// A node without autograd and without a group: sessions, calls and references on a scripted
// network. The test's own code is its main.
class CallNode final : public SessionListener {
 public:
  CallNode(TestWorld& world, ScriptedNetwork& network, CallNodeOptions options,
           const FunctionRegistry& registry)
      : options_(std::move(options)),
        runtime(std::make_shared<TestRuntime>(world)),
        strand(std::make_shared<NodeStrand>(runtime, runtime.get(), &trace, self(),
                                            options_.session.names[self().value], Seed{1})),
        main(strand->make_execution(CausalId{incarnation(), {hash_text(strand->name()), 0}, 0},
                                    "main")),
        exceptions(*strand, registry.exceptions(), options_.exception_traces,
                   /*witness=*/nullptr),
        deadlines(*strand),
        sessions(options_.session, *strand, network.end(self().value), *codec_, *this),
        pending(options_.session, *strand, sessions, deadlines),
        served(options_.served, options_.session, *strand, sessions, pending, registry),
        rrefs(options_.session, *strand, sessions, deadlines, pending, served),
        caller(std::make_shared<Caller>(strand, std::make_shared<FunctionRegistry>(registry),
                                        options_.session.names, options_.rpc_timeout)),
        calls(caller, &rrefs) {
    strand->set_incarnation(incarnation());
    caller->set_parts({.calls = &pending, .deadlines = &deadlines});
    strand->set_exception_hook(&exceptions);
    pending.set_hooks(&rrefs, nullptr, &exceptions);
    rrefs.set_caller(caller, nullptr);
    served.set_hooks(
        &rrefs, nullptr, &rrefs,
        [this](const std::shared_ptr<ServedCall>& call, UniqueFunction<void(CallContext&)> body) {
          CallContext context(Calls(caller, &rrefs), call);
          body(context);
        });
    sessions.set_on_read([this](WorkerId peer) { served.on_read(peer); });
    runtime->run_as(main.get());
    network.attach(self().value, *runtime, sessions, {self(), incarnation(), strand->name()});
    runtime->post([this] { sessions.start(); });
  }
  ~CallNode() override { end(); }

  // Fails everything, as the end of a node does.
  void end() {
    if (std::exchange(ended_, true)) return;
    runtime->post([this] {
      const Error why{.kind = ErrorKind::node_stopped, .text = "ended", .worker = strand->name()};
      pending.fail_all(why);
      served.clear();
      rrefs.clear();
      deadlines.clear();
      sessions.stop();
      strand->close(why);
    });
    runtime->post([this] { strand->outlive_node(); });
  }

  void fence(uint32_t peer, std::string text = "given up") {
    runtime->post([&] {
      sessions.fence(WorkerId{peer}, {.kind = ErrorKind::peer_lost,
                                      .text = std::move(text),
                                      .worker = options_.session.names[peer]});
    });
  }

  // A reference to a value that stays here.
  template <class T>
  [[nodiscard]] RRef<T> own(T value) {
    return RRef<T>(rrefs.own(HeldValue::of<T>(std::move(value))));
  }

  // The answer to a call that typed code would not make.
  [[nodiscard]] Result<Answer> answer_to(Draft draft) {
    std::optional<Result<Answer>> answer;
    if (Status waited = caller->wait_for(draft, answer); !waited.ok())
      return std::move(waited.error());
    return std::move(*answer);
  }

  // SessionListener.
  void on_message(WorkerId from, Message&& message) override {
    if (const auto violation = sessions.judge(from, message))
      return sessions.accuse(from, *violation);
    std::visit(Router{*this, from}, message.content);
  }
  void on_peer_joined(const Hello&) override {}
  void on_peer_fenced(WorkerId peer, Incarnation life, const Error& why) override {
    served.on_peer_fenced(peer);
    pending.on_peer_fenced(peer, why);
    rrefs.on_peer_fenced(peer, life, why);
  }
  Status check_hello(const Hello&) override { return Unit{}; }
  void on_hello_refused(WorkerId, const Error&) override {}
  bool may_have_left(WorkerId) const override { return false; }

  [[nodiscard]] WorkerId self() const { return options_.session.self; }
  [[nodiscard]] Incarnation incarnation() const { return options_.session.incarnation; }

 private:
  struct Router {
    CallNode& node;
    WorkerId from;
    void operator()(Call& call) const { node.served.on_call(from, std::move(call)); }
    void operator()(Response& response) const {
      node.pending.on_response(from, std::move(response));
    }
    void operator()(Cancel& cancel) const { node.served.on_cancel(from, cancel); }
    void operator()(Item& item) const { node.pending.on_item(from, std::move(item)); }
    void operator()(Credit& credit) const { node.served.on_credit(from, credit); }
    void operator()(End& end) const { node.pending.on_end(from, std::move(end)); }
    void operator()(ForkRequest& request) const { node.rrefs.on_fork_request(from, request); }
    void operator()(ForkConfirm& confirm) const { node.rrefs.on_fork_confirm(from, confirm); }
    void operator()(ChildAccept& accept) const { node.rrefs.on_child_accept(from, accept); }
    void operator()(UserDelete& gone) const { node.rrefs.on_user_delete(from, gone); }
    template <class Other>
    void operator()(Other&) const {
      REHEARSAL_CHECK(false, "not a message of calls or references");
    }
  };

  const CallNodeOptions options_;
  const std::unique_ptr<Codec> codec_ = make_protobuf_codec();
  bool ended_ = false;

 public:
  RecordingTrace trace;
  const std::shared_ptr<TestRuntime> runtime;
  const std::shared_ptr<NodeStrand> strand;
  const std::shared_ptr<Execution> main;
  const ExceptionEncoder exceptions;
  Deadlines deadlines;
  Sessions sessions;
  PendingCalls pending;
  ServedCalls served;
  RRefContext rrefs;
  const std::shared_ptr<Caller> caller;
  const Calls calls;
};

}  // namespace rehearsal::doubles
