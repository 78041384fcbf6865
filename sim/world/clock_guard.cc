#include "sim/world/clock_guard.h"

#include <pthread.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sim/world/call_stack.h"

namespace rehearsal::sim {
namespace {

// The switch: of the thread, because a run has one, and another thread may do what it likes.
thread_local int guards = 0;
thread_local int allowances = 0;

constexpr const char* kClock =
    "must not depend on the machine's clock. Ask worker.now() instead; what only people see may "
    "hold sim::RealClockAllowed";
constexpr const char* kSleep = "must not wait for the machine's clock. Wait for a future instead";
constexpr const char* kThread =
    "has one thread. Call a function of this worker with rpc_async instead";

[[noreturn]] void stop(const char* function, const char* rule) {
  allowances = 1;  // what follows may do what it likes
  std::fprintf(stderr, "simulated code called %s: a simulated run %s. The call came from\n",
               function, rule);
  const std::vector<std::string> names = call_stack();
  const auto wrapper = std::find_if(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with("__wrap_");
  });
  for (auto name = wrapper == names.end() ? names.begin() : wrapper + 1; name != names.end();
       ++name)
    std::fprintf(stderr, "  %s\n", name->c_str());
  std::fflush(stderr);
  std::abort();
}

void check(const char* function, const char* rule) {
  if (guards > 0 && allowances == 0) [[unlikely]]
    stop(function, rule);
}

}  // namespace

ClockGuard::ClockGuard() { ++guards; }
ClockGuard::~ClockGuard() { --guards; }

RealClockAllowed::RealClockAllowed() { ++allowances; }
RealClockAllowed::~RealClockAllowed() { --allowances; }

}  // namespace rehearsal::sim

// The replacement that the linker puts in the place of each function, and the function itself. The
// names are the linker's; tests/sim/world/clock_guard_test.cc calls every one.
namespace rehearsal::sim::wrapped {

using SteadyInstant = std::chrono::steady_clock::time_point;
using SystemInstant = std::chrono::system_clock::time_point;

int real_clock_gettime(clockid_t clock, timespec* time) asm("__real_clock_gettime");
int wrap_clock_gettime(clockid_t clock, timespec* time) asm("__wrap_clock_gettime");
int wrap_clock_gettime(clockid_t clock, timespec* time) {
  check("clock_gettime", kClock);
  return real_clock_gettime(clock, time);
}

int real_gettimeofday(timeval* time, void* zone) asm("__real_gettimeofday");
int wrap_gettimeofday(timeval* time, void* zone) asm("__wrap_gettimeofday");
int wrap_gettimeofday(timeval* time, void* zone) {
  check("gettimeofday", kClock);
  return real_gettimeofday(time, zone);
}

time_t real_time(time_t* time) asm("__real_time");
time_t wrap_time(time_t* time) asm("__wrap_time");
time_t wrap_time(time_t* time) {
  check("time", kClock);
  return real_time(time);
}

clock_t real_clock() asm("__real_clock");
clock_t wrap_clock() asm("__wrap_clock");
clock_t wrap_clock() {
  check("clock", kClock);
  return real_clock();
}

int real_timespec_get(timespec* time, int base) asm("__real_timespec_get");
int wrap_timespec_get(timespec* time, int base) asm("__wrap_timespec_get");
int wrap_timespec_get(timespec* time, int base) {
  check("timespec_get", kClock);
  return real_timespec_get(time, base);
}

SteadyInstant real_steady_now() asm("__real__ZNSt6chrono3_V212steady_clock3nowEv");
SteadyInstant wrap_steady_now() asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");
SteadyInstant wrap_steady_now() {
  check("std::chrono::steady_clock::now", kClock);
  return real_steady_now();
}

SystemInstant real_system_now() asm("__real__ZNSt6chrono3_V212system_clock3nowEv");
SystemInstant wrap_system_now() asm("__wrap__ZNSt6chrono3_V212system_clock3nowEv");
SystemInstant wrap_system_now() {
  check("std::chrono::system_clock::now", kClock);
  return real_system_now();
}

int real_nanosleep(const timespec* time, timespec* left) asm("__real_nanosleep");
int wrap_nanosleep(const timespec* time, timespec* left) asm("__wrap_nanosleep");
int wrap_nanosleep(const timespec* time, timespec* left) {
  check("nanosleep", kSleep);
  return real_nanosleep(time, left);
}

int real_clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                         timespec* left) asm("__real_clock_nanosleep");
int wrap_clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                         timespec* left) asm("__wrap_clock_nanosleep");
int wrap_clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* left) {
  check("clock_nanosleep", kSleep);
  return real_clock_nanosleep(clock, flags, time, left);
}

int real_usleep(useconds_t time) asm("__real_usleep");
int wrap_usleep(useconds_t time) asm("__wrap_usleep");
int wrap_usleep(useconds_t time) {
  check("usleep", kSleep);
  return real_usleep(time);
}

unsigned real_sleep(unsigned seconds) asm("__real_sleep");
unsigned wrap_sleep(unsigned seconds) asm("__wrap_sleep");
unsigned wrap_sleep(unsigned seconds) {
  check("sleep", kSleep);
  return real_sleep(seconds);
}

using ThreadMain = void* (*)(void*);
int real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, ThreadMain main,
                        void* argument) asm("__real_pthread_create");
int wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, ThreadMain main,
                        void* argument) asm("__wrap_pthread_create");
int wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, ThreadMain main,
                        void* argument) {
  check("pthread_create", kThread);
  return real_pthread_create(thread, attributes, main, argument);
}

int real_thrd_create(thrd_t* thread, thrd_start_t main, void* argument) asm("__real_thrd_create");
int wrap_thrd_create(thrd_t* thread, thrd_start_t main, void* argument) asm("__wrap_thrd_create");
int wrap_thrd_create(thrd_t* thread, thrd_start_t main, void* argument) {
  check("thrd_create", kThread);
  return real_thrd_create(thread, main, argument);
}

// std::thread::_M_start_thread(std::unique_ptr<_State>, void (*)()), which std::jthread and
// std::async call, too: the object and the state are passed by their addresses.
void real_start_thread(void* thread, void* state, void (*depends)()) asm(
    "__real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
void wrap_start_thread(void* thread, void* state, void (*depends)()) asm(
    "__wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE");
void wrap_start_thread(void* thread, void* state, void (*depends)()) {
  check("std::thread", kThread);
  real_start_thread(thread, state, depends);
}

}  // namespace rehearsal::sim::wrapped
