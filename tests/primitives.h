// Every kind of wait in a primitive of Boost.Fiber, behind one face: for tests that try them all.
#pragma once

#include <gtest/gtest.h>

#include <boost/fiber/all.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "core/api/call_context.h"

namespace rehearsal {

namespace bf = boost::fibers;

// Something to wait in and to be woken from, so often each.
class Primitive {
 public:
  virtual ~Primitive() = default;
  virtual void wait(CallContext& context) = 0;
  virtual void wake(CallContext& context) = 0;
};

template <class Condition>
class WaitsInCondition final : public Primitive {
 public:
  void wait(CallContext&) override {
    std::unique_lock lock(mutex_);
    condition_.wait(lock, [this] { return tokens_ > 0; });
    --tokens_;
  }
  void wake(CallContext&) override {
    const std::lock_guard lock(mutex_);
    ++tokens_;
    condition_.notify_one();
  }

 private:
  bf::mutex mutex_;
  Condition condition_;
  int64_t tokens_ = 0;
};

class WaitsInEmptyChannel final : public Primitive {
 public:
  void wait(CallContext&) override { EXPECT_EQ(channel_.value_pop(), 7); }
  void wake(CallContext&) override { channel_.push(7); }

 private:
  bf::buffered_channel<int64_t> channel_{8};
};

class WaitsInFullChannel final : public Primitive {
 public:
  WaitsInFullChannel() {
    while (channel_.try_push(7) == bf::channel_op_status::success) continue;
  }
  void wait(CallContext&) override { channel_.push(7); }
  void wake(CallContext&) override { EXPECT_EQ(channel_.value_pop(), 7); }

 private:
  bf::buffered_channel<int64_t> channel_{4};
};

class WaitsInFuture final : public Primitive {
 public:
  void wait(CallContext&) override { EXPECT_EQ(future_.get(), 7); }
  void wake(CallContext&) override {
    if (!std::exchange(set_, true)) promise_.set_value(7);
  }

 private:
  bool set_ = false;
  bf::promise<int64_t> promise_;
  bf::shared_future<int64_t> future_{promise_.get_future().share()};
};

class WaitsInTask final : public Primitive {
 public:
  void wait(CallContext&) override { EXPECT_EQ(future_.get(), 7); }
  void wake(CallContext&) override {
    if (!std::exchange(ran_, true)) task_();
  }

 private:
  bool ran_ = false;
  bf::packaged_task<int64_t()> task_{[] { return int64_t{7}; }};
  bf::shared_future<int64_t> future_{task_.get_future().share()};
};

class WaitsInBarrier final : public Primitive {
 public:
  void wait(CallContext&) override { barrier_.wait(); }
  void wake(CallContext&) override { barrier_.wait(); }

 private:
  bf::barrier barrier_{2};
};

inline void pong() {}

// Each execution calls its caller while it has the mutex.
template <class Mutex>
class WaitsInMutex final : public Primitive {
 public:
  void wait(CallContext& context) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(std::exchange(taken_, true));
    struct Release {
      ~Release() { taken = false; }
      bool& taken;
    } const release{taken_};
    context.rpc_sync(context.caller_info().id, &pong);
  }
  void wake(CallContext& context) override { wait(context); }

 private:
  Mutex mutex_;
  bool taken_ = false;
};

enum : int64_t { kBarrier = 6, kPrimitives = 11 };

inline std::unique_ptr<Primitive> make_primitive(int64_t number) {
  switch (number) {
    case 0:
      return std::make_unique<WaitsInCondition<bf::condition_variable>>();
    case 1:
      return std::make_unique<WaitsInCondition<bf::condition_variable_any>>();
    case 2:
      return std::make_unique<WaitsInEmptyChannel>();
    case 3:
      return std::make_unique<WaitsInFullChannel>();
    case 4:
      return std::make_unique<WaitsInFuture>();
    case 5:
      return std::make_unique<WaitsInTask>();
    case kBarrier:
      return std::make_unique<WaitsInBarrier>();
    case 7:
      return std::make_unique<WaitsInMutex<bf::mutex>>();
    case 8:
      return std::make_unique<WaitsInMutex<bf::recursive_mutex>>();
    case 9:
      return std::make_unique<WaitsInMutex<bf::timed_mutex>>();
    default:
      return std::make_unique<WaitsInMutex<bf::recursive_timed_mutex>>();
  }
}

}  // namespace rehearsal
