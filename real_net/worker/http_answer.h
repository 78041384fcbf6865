#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rehearsal::real {

// The most that a request may have, up to the empty line that ends its head.
inline constexpr size_t kHttpRequestMax = 8192;

// The answer to a request of HTTP/1.x of which these bytes have come, head and body of the answer:
// `page` for GET /metrics, 404 for another path, 405 for another method, 400 for what is no
// request; nothing as long as more of it must come. `ended`: nothing more will. Every answer ends
// the connection. `page` is asked at most once.
[[nodiscard]] std::optional<std::string> http_answer(std::string_view received, bool ended,
                                                     const std::function<std::string()>& page);

}  // namespace rehearsal::real
