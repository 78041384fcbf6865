#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

namespace rehearsal::real {

// While it lives, no thread can be started in this process, whoever its user is: each asks for a
// stack that is larger than the address space, and pthread_create says EAGAIN, as it does at the
// limits of processes.
class NoThreads {
 public:
  NoThreads() {
    EXPECT_EQ(pthread_getattr_default_np(&before_), 0);
    pthread_attr_t none;
    EXPECT_EQ(pthread_getattr_default_np(&none), 0);
    EXPECT_EQ(pthread_attr_setstacksize(&none, size_t{1} << 47), 0);
    EXPECT_EQ(pthread_setattr_default_np(&none), 0);
    pthread_attr_destroy(&none);
  }
  ~NoThreads() {
    EXPECT_EQ(pthread_setattr_default_np(&before_), 0);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

}  // namespace rehearsal::real
