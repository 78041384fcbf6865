#include "net_fake/link_settings.h"

#include <stdexcept>
#include <string>

#include "net_fake/decisions.h"

namespace rehearsal::net_fake {
namespace {

uint64_t millionths(double probability) {
  if (!(probability >= 0.0 && probability <= 1.0))
    throw std::invalid_argument("a probability lies between 0 and 1, not at " +
                                std::to_string(probability));
  return static_cast<uint64_t>(probability * static_cast<double>(kMillion) + 0.5);
}

}  // namespace

const LinkSettings& LinkSettings::delay(const Delay& delay) const {
  for (LinkModel* model : models_) model->delay = delay;
  return *this;
}

const LinkSettings& LinkSettings::delay(Duration constant) const {
  return delay(Delay::constant(constant));
}

const LinkSettings& LinkSettings::delay(Duration min, Duration max) const {
  return delay(Delay::uniform(min, max));
}

const LinkSettings& LinkSettings::connect(const Delay& delay) const {
  for (LinkModel* model : models_) model->connect = delay;
  return *this;
}

const LinkSettings& LinkSettings::retransmit(double probability) const {
  for (LinkModel* model : models_) model->retransmit_millionths = millionths(probability);
  return *this;
}

const LinkSettings& LinkSettings::cut(double probability) const {
  for (LinkModel* model : models_) model->cut_millionths = millionths(probability);
  return *this;
}

const LinkSettings& LinkSettings::corrupt(double probability) const {
  for (LinkModel* model : models_) model->corrupt_millionths = millionths(probability);
  return *this;
}

const LinkSettings& LinkSettings::hang(double probability) const {
  for (LinkModel* model : models_) model->hang_millionths = millionths(probability);
  return *this;
}

const LinkSettings& LinkSettings::refuse(double probability) const {
  for (LinkModel* model : models_) model->refuse_millionths = millionths(probability);
  return *this;
}

const LinkSettings& LinkSettings::break_after(uint64_t messages) const {
  for (LinkModel* model : models_) model->life_messages = messages;
  return *this;
}

const LinkSettings& LinkSettings::bytes_per_second(uint64_t limit) const {
  for (LinkModel* model : models_) model->bytes_per_second = limit;
  return *this;
}

}  // namespace rehearsal::net_fake
