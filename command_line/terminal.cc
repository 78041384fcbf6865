#include "command_line/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "sim/world/clock_guard.h"

namespace rehearsal::command_line {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr size_t kColumnsOtherwise = 80;

size_t terminal_columns() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kColumnsOtherwise;
}

// Cuts at a character, not inside one.
std::string cut(std::string text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0) == 0x80) --bytes_max;
  text.resize(bytes_max);
  return text;
}

// Simulated workers report their progress, too, and a stopwatch says when to draw it.
std::chrono::steady_clock::time_point real_now() {
  const sim::RealClockAllowed allowed;
  return std::chrono::steady_clock::now();
}

}  // namespace

Stopwatch::Stopwatch() : start_(real_now()) {}

double Stopwatch::seconds() const {
  return std::chrono::duration<double>(real_now() - start_).count();
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(const std::string& text) {
  if (!terminal_) return;
  const double now = since_start_.seconds();
  if (shown_ && now - last_ < kRedrawSeconds) return;
  last_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r\x1b[K%s", cut(text, terminal_columns() - 1).c_str());
  std::fflush(stderr);
}

void ProgressLine::clear() {
  if (!shown_) return;
  shown_ = false;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace rehearsal::command_line
