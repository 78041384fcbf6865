#pragma once

#include <string_view>

namespace rehearsal::sim {

// The files of this folder, as they are. page.html has {{css}}, {{history}} and {{script}} where
// the others go.
extern const std::string_view kPageHtml;
extern const std::string_view kPageCss;
extern const std::string_view kPageScript;

}  // namespace rehearsal::sim
