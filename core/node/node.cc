#include "core/node/node.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/node/node_parts.h"

namespace rehearsal {

Node::Node(NodeOptions options, const Program& program, Environment environment)
    : parts_(std::make_unique<NodeParts>(std::move(options), program, std::move(environment))) {}

// References, contexts and futures may be left: their strand outlives the node.
Node::~Node() {
  parts_->strand->post_always([strand = parts_->strand, left = parts_->values_left()]() mutable {
    for (HeldValue& value : left) value.drop(*strand);
  });
  // The values die while their worker can still be told of what their destructors do.
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

void Node::let_go() {
  for (HeldValue& value : parts_->values_left()) value.drop(*parts_->strand);
  parts_->drop_states();
}

void Node::give_up(WorkerId peer) {
  const std::string& name = parts_->options.names.at(peer.value);
  parts_->sessions.fence(peer, {.kind = ErrorKind::peer_lost,
                                .text = "worker '" + name + "' was lost: it was given up",
                                .worker = name});
}

void Node::say(WorkerId to, Message message) {
  if (!parts_->ended) parts_->sessions.send(to, std::move(message));
}

bool Node::left_at_once() const { return parts_->leaves_at_once; }

bool Node::starts_again() const { return parts_->starts_again; }

bool Node::ended() const { return parts_->ended; }

NodeCensus Node::census() const { return parts_->census(); }

PeerPeaks Node::peaks() const { return parts_->peaks(); }

const std::optional<NodeCensus>& Node::census_at_end() const { return parts_->census_at_end; }

std::string Node::debug_info() const {
  return parts_->rrefs.debug_info() + parts_->published.debug_info() +
         parts_->contexts.debug_info();
}

std::vector<OwedAcknowledgement> Node::owed_acknowledgements() const {
  return parts_->sessions.owed_acknowledgements();
}

std::string Node::check_invariants() const {
  return parts_->rrefs.check_invariants() + parts_->contexts.check_invariants() +
         parts_->kept_for_the_lost();
}

WaitViews Node::waits() const { return parts_->waits(); }

uint64_t Node::code_waits() const { return parts_->strand->waits().code_waits(); }

Duration Node::pause_left(Duration at_least) const {
  return parts_->deadlines.pause_left(at_least);
}

ValueViews Node::values(std::type_index type) const { return parts_->values(type); }

}  // namespace rehearsal
