#pragma once

#include <atomic>
#include <cerrno>
#include <streambuf>

namespace rehearsal::command_line {

// Hands on to another buffer what a stream writes, and keeps the errno of the first failure: a
// stream itself only knows that it failed.
class NotingBuffer : public std::streambuf {
 public:
  // `inner` must outlive it.
  explicit NotingBuffer(std::streambuf& inner) : inner_(inner) {}

  // 0: all that was written so far has been taken.
  [[nodiscard]] int error() const { return error_; }

 protected:
  int_type overflow(int_type letter) override {
    if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
    errno = 0;
    const int_type put = inner_.sputc(traits_type::to_char_type(letter));
    note(!traits_type::eq_int_type(put, traits_type::eof()));
    return put;
  }

  std::streamsize xsputn(const char* text, std::streamsize size) override {
    errno = 0;
    const std::streamsize put = inner_.sputn(text, size);
    note(put == size);
    return put;
  }

  int sync() override {
    errno = 0;
    const int synced = inner_.pubsync();
    note(synced == 0);
    return synced;
  }

 private:
  void note(bool done) {
    int none = 0;
    if (!done) error_.compare_exchange_strong(none, errno != 0 ? errno : EIO);
  }

  std::streambuf& inner_;
  std::atomic<int> error_ = 0;  // several threads may write to one stream
};

}  // namespace rehearsal::command_line
