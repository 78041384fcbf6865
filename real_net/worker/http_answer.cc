#include "real_net/worker/http_answer.h"

#include <algorithm>

#include "observe/metrics_text.h"

namespace rehearsal::real {
namespace {

// Takes a line from the front, without its end. Nothing if it has not ended yet.
std::optional<std::string_view> take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Whether a head may consist of these bytes. Other bytes are known to be wrong as soon as they
// come.
bool is_text(std::string_view bytes) {
  return std::ranges::all_of(bytes, [](char byte) {
    return (byte >= ' ' && byte <= '~') || byte == '\r' || byte == '\n' || byte == '\t';
  });
}

struct RequestLine {
  std::string_view method, target;
};

std::optional<RequestLine> parse_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return std::nullopt;
  const std::string_view version = line.substr(last + 1);
  const RequestLine parsed{line.substr(0, first), line.substr(first + 1, last - first - 1)};
  const bool is_method = !parsed.method.empty() && std::ranges::all_of(parsed.method, [](char c) {
    return c >= 'A' && c <= 'Z';
  });
  const bool is_target = parsed.target.starts_with('/') &&
                         parsed.target.find_first_of(" \t\r") == std::string_view::npos;
  if (!is_method || !is_target || (version != "HTTP/1.1" && version != "HTTP/1.0"))
    return std::nullopt;
  return parsed;
}

bool is_header(std::string_view line) {
  const size_t colon = line.find(':');
  return colon != std::string_view::npos && colon > 0 &&
         line.substr(0, colon).find_first_of(" \t\r") == std::string_view::npos;
}

std::string answer(std::string_view status, std::string_view type, const std::string& body,
                   std::string_view header = "") {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nContent-Type: ").append(type);
  text.append("\r\nContent-Length: ").append(std::to_string(body.size())).append("\r\n");
  text.append(header).append("Connection: close\r\n\r\n").append(body);
  return text;
}

std::string refusal(std::string_view status, const std::string& body,
                    std::string_view header = "") {
  return answer(status, "text/plain; charset=utf-8", body, header);
}

std::string malformed() { return refusal("400 Bad Request", "This is no request of HTTP/1.1.\n"); }

}  // namespace

std::optional<std::string> http_answer(std::string_view received, bool ended,
                                       const std::function<std::string()>& page) {
  const bool too_long = received.size() > kHttpRequestMax;
  std::string_view rest = received.substr(0, kHttpRequestMax);
  const std::optional<std::string> more =
      ended || too_long ? std::optional(malformed()) : std::nullopt;
  // A body may follow the head, and is not read.
  const size_t head = std::min(rest.find("\n\r\n"), rest.find("\n\n"));
  if (!is_text(rest.substr(0, head))) return malformed();
  const auto first = take_line(rest);
  if (!first) return more;
  const std::optional<RequestLine> request = parse_request_line(*first);
  if (!request) return malformed();
  for (;;) {
    const auto line = take_line(rest);
    if (!line) return more;
    if (line->empty()) break;
    if (!is_header(*line)) return malformed();
  }
  if (request->target.substr(0, request->target.find('?')) != "/metrics")
    return refusal("404 Not Found", "There is /metrics here, and nothing else.\n");
  if (request->method != "GET")
    return refusal("405 Method Not Allowed", "Only GET is answered.\n", "Allow: GET\r\n");
  return answer("200 OK", observe::kMetricsContentType, page());
}

}  // namespace rehearsal::real
