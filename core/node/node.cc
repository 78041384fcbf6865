#include "core/node/node.h"

#include "core/node/node_parts.h"

namespace rehearsal {

Node::Node(NodeOptions options, const Program& program, Environment environment)
    : parts_(std::make_unique<NodeParts>(std::move(options), program, std::move(environment))) {}

// References, contexts and futures may be left: their strand outlives the node.
Node::~Node() {
  parts_->strand->post_always([strand = parts_->strand] { strand->outlive_node(); });
}

FrameSink& Node::sink() { return parts_->sessions; }

Hello Node::hello() const {
  return {parts_->options.id, parts_->options.incarnation, to_text(parts_->greeting)};
}

Execution& Node::main_execution() { return *parts_->main; }

Status Node::run_main() { return parts_->run_main(); }

void Node::abort(const Error& why) { parts_->abort(why); }

void Node::kill() { parts_->kill(); }

void Node::give_up(WorkerId peer) {
  const std::string& name = parts_->options.names.at(peer.value);
  parts_->sessions.fence(peer, {.kind = ErrorKind::peer_lost,
                                .text = "worker '" + name + "' was lost: it was given up",
                                .worker = name});
}

bool Node::left_at_once() const { return parts_->leaves_at_once; }

bool Node::ended() const { return parts_->ended; }

NodeCensus Node::census() const { return parts_->census(); }

std::string Node::debug_info() const {
  return parts_->rrefs.debug_info() + parts_->contexts.debug_info();
}

std::string Node::check_invariants() const {
  return parts_->rrefs.check_invariants() + parts_->contexts.check_invariants();
}

WaitViews Node::waits() const { return parts_->waits(); }

}  // namespace rehearsal
