#pragma once

#include <cstdint>
#include <vector>

#include "net_fake/link_model.h"

namespace rehearsal::net_fake {

// Changes how one or more directions behave, from now on. Probabilities are given as fractions and
// kept in millionths.
class LinkSettings {
 public:
  explicit LinkSettings(std::vector<LinkModel*> models) : models_(std::move(models)) {}

  const LinkSettings& delay(const Delay& delay) const;
  const LinkSettings& delay(Duration constant) const;
  const LinkSettings& delay(Duration min, Duration max) const;
  const LinkSettings& connect(const Delay& delay) const;
  const LinkSettings& retransmit(double probability) const;
  const LinkSettings& cut(double probability) const;
  const LinkSettings& corrupt(double probability) const;
  const LinkSettings& refuse(double probability) const;
  const LinkSettings& hang(double probability) const;
  // Connections break, again and again, at the message behind so many of one way; zero: they last.
  const LinkSettings& break_after(uint64_t messages) const;
  const LinkSettings& bytes_per_second(uint64_t limit) const;

 private:
  std::vector<LinkModel*> models_;
};

}  // namespace rehearsal::net_fake
