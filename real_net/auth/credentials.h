#pragma once

#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "real_net/auth/auth.h"
#include "real_net/auth/secure_channel.h"

struct ssl_ctx_st;

namespace rehearsal::real {

// The proof of one worker, and the means to check those of others: TLS 1.3 by OpenSSL.
//
// With a secret: an external pre-shared key (RFC 8446, 4.2.11) that is derived from it, with a
// fresh Diffie-Hellman exchange, so that who learns the secret later cannot read what was said. It
// tells members from strangers, not one member from another. With certificates, both ends show
// one, and `SecureChannel::proves` tells whose it is; the files are read again when they change,
// for the connections that are made from then on. Any thread.
class Credentials {
 public:
  // Told why files that have changed cannot be used, once for each change. From any thread.
  using Tell = std::function<void(const Error&)>;

  // The error (bad_arguments) names the file, or what is wrong with it.
  // REQUIRES: auth.proves().
  [[nodiscard]] static Result<std::shared_ptr<Credentials>> make(Auth auth, Tell tell = nullptr);
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // A channel for a new connection; `connects`: of the end that has made it. Reads files that have
  // changed; if they cannot be read, it goes on with those that it has, and tries again after two
  // seconds. The error (overloaded): there is no memory for one.
  [[nodiscard]] Result<std::unique_ptr<SecureChannel>> open(bool connects);

 private:
  struct Contexts;
  using Clock = std::chrono::steady_clock;
  using Times = std::array<std::filesystem::file_time_type, 4>;

  Credentials(Auth auth, Tell tell) : auth_(std::move(auth)), tell_(std::move(tell)) {}
  [[nodiscard]] Result<std::shared_ptr<Contexts>> read() const;
  [[nodiscard]] Times file_times() const;
  void renew();

  const Auth auth_;
  const Tell tell_;  // may be null
  std::mutex mutex_;
  std::shared_ptr<Contexts> contexts_;
  Times times_{};                 // of the files as they were read
  Times failed_{};                // of those that could not be, the last time
  Clock::time_point next_try_{};  // to read these again
};

}  // namespace rehearsal::real
