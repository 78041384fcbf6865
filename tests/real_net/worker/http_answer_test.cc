#include "real_net/worker/http_answer.h"

#include <gtest/gtest.h>

#include "core/base/hash.h"

namespace rehearsal::real {
namespace {

std::string page() { return "the page\n"; }

std::string status_of(std::string_view request, bool ended = true) {
  const std::optional<std::string> answer = http_answer(request, ended, &page);
  return answer ? answer->substr(0, answer->find('\r')) : "";
}

TEST(HttpAnswer, APageIsAnsweredWithItsLengthAndType) {
  // Goal: what a scraper reads, byte for byte. Method: the request of a browser; and an old client.
  const std::string expected =
      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: 9\r\nConnection: close\r\n\r\nthe page\n";
  EXPECT_EQ(
      http_answer("GET /metrics HTTP/1.1\r\nHost: ps:9464\r\nAccept: */*\r\n\r\n", false, &page),
      expected);
  EXPECT_EQ(http_answer("GET /metrics?name=x HTTP/1.0\n\n", false, &page), expected);
}

TEST(HttpAnswer, WhatIsNotThereIsRefused) {
  // Goal: 404, 405 and 400 each where it belongs. Method: one request each.
  const std::string end = " HTTP/1.1\r\n\r\n";
  EXPECT_EQ(status_of("GET /" + end), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status_of("GET /metrics/x" + end), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(status_of("POST /metrics HTTP/1.1\r\nContent-Length: 2\r\n\r\n\x01\x02"),
            "HTTP/1.1 405 Method Not Allowed");
  for (const std::string& bad :
       {std::string("GET /metrics\r\n\r\n"), "GET  /metrics" + end, "get /metrics" + end,
        "GET metrics" + end, std::string("GET /metrics HTTP/2.0\r\n\r\n"),
        std::string("GET /metrics HTTP/1.1\r\nno header\r\n\r\n"),
        std::string("GET /metrics HTTP/1.1\r\n: empty\r\n\r\n"),
        std::string("GET /metrics HTTP/1.1\r\nA b: c\r\n\r\n"), std::string("\r\n\r\n")})
    EXPECT_EQ(status_of(bad), "HTTP/1.1 400 Bad Request") << bad;
}

TEST(HttpAnswer, AnAnswerWaitsForTheEndOfTheRequest) {
  // Goal: a slow client is no broken one; but one that hangs up is. Method: every prefix.
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: ps\r\n\r\n";
  for (size_t length = 0; length < request.size(); ++length) {
    EXPECT_EQ(status_of(request.substr(0, length), false), "") << length;
    EXPECT_EQ(status_of(request.substr(0, length), true), "HTTP/1.1 400 Bad Request") << length;
  }
}

TEST(HttpAnswer, WhatCannotBecomeARequestIsRefusedAtOnce) {
  // Goal: nobody waits for the rest of nonsense. Method: bytes that no head has; too many of them.
  EXPECT_EQ(status_of(std::string("GET /\0", 6), false), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("\x16\x03\x01", false), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of("nonsense\r\n", false), "HTTP/1.1 400 Bad Request");
  const std::string long_head = "GET /metrics HTTP/1.1\r\nA: " + std::string(kHttpRequestMax, 'a');
  EXPECT_EQ(status_of(long_head, false), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(status_of(std::string(kHttpRequestMax + 1, 'G'), false), "HTTP/1.1 400 Bad Request");
}

TEST(HttpAnswer, NoBytesAreTooStrange) {
  // Goal: whatever comes is answered or waited for. Method: 20,000 drawn requests, of bytes that a
  // request has and of any.
  const std::string letters = "GET /metrics HTTP/1.1\r\n:a \n\r\n";
  for (uint64_t number = 0; number < 20'000; ++number) {
    std::string request(mix(number, 1) % 120, ' ');
    for (size_t i = 0; i < request.size(); ++i) {
      const uint64_t draw = mix(number, 10 + i);
      request[i] = number % 2 == 0 ? letters[draw % letters.size()] : static_cast<char>(draw);
    }
    const std::string status = status_of(request);
    EXPECT_TRUE(status.starts_with("HTTP/1.1 ")) << number;
  }
}

}  // namespace
}  // namespace rehearsal::real
