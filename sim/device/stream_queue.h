#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "sim/device/accesses.h"

namespace rehearsal::sim::device {

// A point of a stream that others can wait for: what an event has recorded.
struct Record {
  bool done = false;
  Clock known;                                 // what is done when the stream gets there
  std::shared_ptr<const OperationName> after;  // its last operation before; null: there is none
};

// One thing that a stream has still to do: run a kernel, wait for a record, or reach one.
struct Operation {
  std::shared_ptr<const OperationName> name;
  std::function<void()> run;          // of a kernel; may throw
  std::shared_ptr<Record> waits_for;  // goes on when it is done
  std::shared_ptr<Record> reaches;
};

// A stream: operations one after the other, in the order in which the host gave them.
class StreamQueue {
 public:
  StreamQueue(c10::DeviceIndex device, c10::StreamId id, size_t number)
      : device_(device), id_(id), number_(number) {}

  [[nodiscard]] c10::DeviceIndex device() const { return device_; }
  [[nodiscard]] c10::StreamId id() const { return id_; }
  // Among all streams of the machine.
  [[nodiscard]] size_t number() const { return number_; }

  // All that is done before whatever is given to the stream next.
  [[nodiscard]] Clock& known() { return known_; }

  void add(Operation operation) {
    if (operation.name) last_ = operation.name;
    operations_.push_back(std::move(operation));
  }
  // The last that it was given; null: none.
  [[nodiscard]] const std::shared_ptr<const OperationName>& last() const { return last_; }
  [[nodiscard]] bool is_idle() const { return operations_.empty(); }
  // Whether its first operation could be done now.
  [[nodiscard]] bool can_go_on() const {
    return !is_idle() && (!operations_.front().waits_for || operations_.front().waits_for->done);
  }
  // Takes its first operation, which can be done.
  [[nodiscard]] Operation take() {
    Operation first = std::move(operations_.front());
    operations_.pop_front();
    return first;
  }

  [[nodiscard]] std::deque<Operation> take_all() { return std::exchange(operations_, {}); }

 private:
  c10::DeviceIndex device_;
  c10::StreamId id_;
  size_t number_;
  Clock known_;
  std::deque<Operation> operations_;
  std::shared_ptr<const OperationName> last_;
};

}  // namespace rehearsal::sim::device
