#include "net_fake/fake_transport.h"

#include <utility>

#include "core/base/check.h"
#include "net_fake/network.h"
#include "net_fake/snapshot.h"

namespace rehearsal::net_fake {

FakeTransport::FakeTransport(Network& network, WorkerId worker, Options options)
    : network_(network), life_{worker, options.life}, options_(options) {
  REHEARSAL_CHECK(options.runtime != nullptr);
  REHEARSAL_CHECK(options.pool != nullptr);
}

FakeTransport::~FakeTransport() { REHEARSAL_CHECK(ended_ || sink_ == nullptr, life_.worker); }

void FakeTransport::start(Hello hello, FrameSink& sink) {
  REHEARSAL_CHECK(sink_ == nullptr);
  REHEARSAL_CHECK(hello.greeting.size() <= kGreetingMax, hello.greeting.size());
  hello_ = std::move(hello);
  sink_ = &sink;
}

Link* FakeTransport::link_to(WorkerId peer) const {
  return peer.value < links_.size() ? links_[peer.value] : nullptr;
}

void FakeTransport::open(WorkerId peer) {
  if (ended_) return;
  REHEARSAL_CHECK(sink_ != nullptr);
  REHEARSAL_CHECK(peer != life_.worker, peer);
  if (link_to(peer) == nullptr) {
    Link& link = network_.link(life_.worker, peer);
    if (links_.size() <= peer.value) links_.resize(peer.value + 1);
    links_[peer.value] = &link;
    link.attach(link.side_of(life_.worker), *this);
  }
  Link& link = *link_to(peer);
  link.open(link.side_of(life_.worker));
}

void FakeTransport::send(WorkerId peer, Frame frame) {
  Link* link = link_to(peer);
  if (ended_ || link == nullptr) return;
  link->send(link->side_of(life_.worker), std::move(frame));
}

void FakeTransport::send_on(WorkerId peer) {
  Link* link = link_to(peer);
  if (ended_ || link == nullptr) return;
  link->send_on(link->side_of(life_.worker));
}

void FakeTransport::break_link(WorkerId peer, const Error& why) {
  Link* link = link_to(peer);
  if (!ended_ && link != nullptr) link->reset(why.text);
}

void FakeTransport::close(WorkerId peer, const Error& reason) {
  Link* link = link_to(peer);
  if (ended_ || link == nullptr) return;
  link->close(link->side_of(life_.worker), reason);
}

uint64_t FakeTransport::queued_bytes(WorkerId peer) const {
  Link* link = link_to(peer);
  if (ended_ || link == nullptr) return 0;
  return link->queued_bytes(link->side_of(life_.worker));
}

void FakeTransport::stop() {
  if (std::exchange(ended_, true)) return;
  for (Link* link : links_)
    if (link != nullptr) link->stop(link->side_of(life_.worker));
}

void FakeTransport::crash() {
  if (std::exchange(ended_, true)) return;
  for (Link* link : links_)
    if (link != nullptr) link->crash(link->side_of(life_.worker));
}

Hello FakeTransport::hello_to(WorkerId peer) const {
  Hello hello = hello_;
  hello.position = sink_->position(peer);
  return hello;
}

void FakeTransport::report_up(Hello&& hello) {
  options_.runtime->post([this, hello = std::make_unique<Hello>(std::move(hello))] {
    if (!ended_) sink_->on_peer_up(*hello);
  });
}

// A task this small needs no allocation, and the frame is moved once only.
void FakeTransport::report_frame(WorkerId peer, Frame&& frame) {
  arrivals_.push({peer, std::move(frame)});
  options_.runtime->post([this] {
    Arrival arrival = arrivals_.pop();
    if (!ended_) sink_->on_frame(arrival.peer, std::move(arrival.frame));
  });
}

void FakeTransport::report_lost(WorkerId peer, const Error& why, bool closed_by_peer) {
  options_.runtime->post([this, peer, closed_by_peer, why = std::make_unique<Error>(why)] {
    if (!ended_) sink_->on_peer_lost(peer, *why, closed_by_peer);
  });
}

void FakeTransport::report_drained(WorkerId peer) {
  options_.runtime->post([this, peer] {
    if (!ended_) sink_->on_drained(peer);
  });
}

void FakeTransport::report_refused(WorkerId peer, const Refusals& refusals) {
  options_.runtime->post([this, peer, refusals] {
    if (!ended_) sink_->on_refused(peer, refusals);
  });
}

}  // namespace rehearsal::net_fake
