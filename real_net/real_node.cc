#include "real_net/real_node.h"

#include "core/base/check.h"
#include "core/node/program.h"

namespace rehearsal::real {
namespace {

TransportOptions transport_options(const RealNodeOptions& options) {
  TransportOptions transport = options.transport;
  transport.names = options.node.names;
  transport.seed = options.node.seed;
  return transport;
}

TcpTransport& listening(TcpTransport& transport, const Address& address) {
  transport.listen(address).or_throw();
  return transport;
}

}  // namespace

RealNode::RealNode(RealNodeOptions options, const Program& program)
    : options_(std::move(options)),
      runtime_(std::make_shared<RealRuntime>(options_.runtime)),
      transport_(*runtime_, pool_, transport_options(options_)),
      node_(options_.node, program,
            {.runtime = runtime_,
             .executions = runtime_.get(),
             .transport = &listening(transport_, options_.listen),
             .trace = options_.trace != nullptr ? options_.trace : &no_trace_}) {}

RealNode::~RealNode() {
  REHEARSAL_CHECK(stuck_.empty(), stuck_.front());
  runtime_->stop();
}

void RealNode::set_address(WorkerId peer, const Address& address) {
  runtime_->post([this, peer, address] { transport_.set_address(peer, address); });
}

void RealNode::abort(const Error& why) {
  runtime_->post([this, why] { node_.abort(why); });
}

Status RealNode::run() {
  const auto guard = runtime_->register_main(node_.main_execution());
  runtime_->post([this] { transport_.start(node_.hello(), node_.sink()); });
  Status status = node_.run_main();
  leave_network();
  if (!runtime_->wait_for_executions(options_.unwind_timeout)) stuck_ = runtime_->live_labels();
  return status;
}

// What is queued still leaves; bounded by the transport's own limit.
void RealNode::leave_network() {
  Waiter stopped;
  runtime_->post([this, &stopped] {
    transport_.stop();
    transport_.when_stopped([this, &stopped] { runtime_->wake(stopped); });
  });
  const ParkOutcome outcome = runtime_->park(stopped);
  REHEARSAL_CHECK(outcome == ParkOutcome::woken);
}

}  // namespace rehearsal::real
