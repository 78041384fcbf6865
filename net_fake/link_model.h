#pragma once

#include <cstdint>

#include "core/base/time.h"
#include "net_fake/delay.h"

namespace rehearsal::net_fake {

// How one direction of a link behaves while nothing is broken.
struct LinkModel {
  Delay delay = Delay::uniform(std::chrono::microseconds(50), std::chrono::microseconds(200));
  Delay connect = Delay::uniform(std::chrono::microseconds(100), std::chrono::microseconds(500));
  uint64_t retransmit_millionths = 0;  // for each frame; again for each further loss of it
  uint64_t cut_millionths = 0;         // for each message: the link is lost at it
  uint64_t corrupt_millionths = 0;     // for each message: a bit of it flips
  uint64_t refuse_millionths = 0;      // for each attempt to connect
  uint64_t hang_millionths = 0;        // the same: nobody answers; never twice in a row
  uint64_t life_messages = 0;     // a connection breaks behind so many of this way; zero: never
  uint64_t bytes_per_second = 0;  // zero: without limit
};

// The faults that come by chance, beyond those of each link's model. All zero is calm weather.
struct Weather {
  uint64_t cut_millionths = 0;         // for each message
  uint64_t retransmit_millionths = 0;  // for each frame
  uint64_t corrupt_millionths = 0;     // for each message
  uint64_t refuse_millionths = 0;      // for each attempt to connect
  uint64_t hang_millionths = 0;        // for each attempt to connect
  uint64_t silence_millionths = 0;     // a lost link's end does not hear of it
  // Every connection of half of the links breaks behind so many messages of one way, or so many
  // frames of any kind; zero: none.
  uint64_t life_messages = 0;
  uint64_t life_frames = 0;
  uint64_t partition_millionths = 0;  // for each message: a partition begins
  uint64_t clog_millionths = 0;       // for each message: links are slowed or jammed from now on
  Duration partition_min{};           // either lasts no less; zero: a 256th of the longest
  Duration partition_max{};           // it heals by itself, at the latest after this
  Duration partition_gap{};           // no other begins for so long after its end
};

struct NetworkOptions {
  LinkModel link;  // of all links that no rule names

  // The bytes that each worker's machine sends and receives in a second, shared by the large frames
  // that it sends and receives at a time; zero: without limit. A link has its own limit.
  uint64_t worker_bytes_per_second = 0;

  // The bytes that the sender's kernel takes: those beyond count as queued.
  uint64_t socket_buffer_bytes = 256 * 1024;
  uint64_t high_water_bytes = 4 * 1024 * 1024;
  uint64_t low_water_bytes = 1024 * 1024;

  Duration retransmission_timeout = std::chrono::milliseconds(200);  // doubles for each loss
  uint32_t losses_max = 4;                                           // of one frame in a row
  Duration user_timeout = std::chrono::seconds(15);    // silence after which a link is given up
  Duration connect_timeout = std::chrono::seconds(5);  // the same of an attempt to connect
  Duration back_off_min = std::chrono::milliseconds(10);
  Duration back_off_max = std::chrono::seconds(1);
  // A worker that lives refuses no attempt by chance once it has done so for as long as this.
  Duration refusals_max = std::chrono::seconds(1);
  // The port of a worker that has left refuses connections, and that of one that has crashed unless
  // its machine is gone, too. Otherwise attempts to reach the dead are not answered.
  bool dead_refuse = true;

  // Every frame is written to bytes, checked and parsed again. Slow; for tests.
  bool through_bytes = false;
};

}  // namespace rehearsal::net_fake
