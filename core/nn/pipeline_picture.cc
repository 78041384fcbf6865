#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "core/api/pipeline.h"

namespace rehearsal {
namespace {

// The time that all spans lie in.
struct Extent {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = std::numeric_limits<int64_t>::min();

  // Where a moment lies on so much space, rounded.
  [[nodiscard]] size_t column(int64_t moment, size_t columns) const {
    const double part = static_cast<double>(moment - begin) / static_cast<double>(end - begin);
    return static_cast<size_t>(part * static_cast<double>(columns) + 0.5);
  }
  [[nodiscard]] std::string milliseconds(int64_t moment) const {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.4g", static_cast<double>(moment - begin) / 1e6);
    return text.data();
  }
};

Extent extent_of(const std::vector<PipelineReport>& reports) {
  Extent extent;
  for (const PipelineReport& report : reports)
    for (const PipelineSpan& span : report.spans) {
      extent.begin = std::min(extent.begin, span.begin);
      extent.end = std::max(extent.end, span.end);
    }
  return extent;
}

bool has_several_stages(const PipelineReport& report) {
  return std::ranges::any_of(report.spans, [&report](const PipelineSpan& span) {
    return span.action.stage != report.spans.front().action.stage;
  });
}

std::string label_of(const PipelineAction& action, bool with_stage) {
  return letter_of(action.pass) + (with_stage ? std::to_string(action.stage) + ":" : "") +
         std::to_string(action.micro_batch);
}

std::string row_of(const PipelineReport& report, const Extent& extent, size_t columns,
                   bool with_stage) {
  std::string row(columns, '.');
  for (const PipelineSpan& span : report.spans) {
    const size_t begin = extent.column(span.begin, columns);
    const size_t end = extent.column(span.end, columns);
    std::string text = label_of(span.action, with_stage);
    text.resize(end - begin, ' ');
    row.replace(begin, end - begin, text);
  }
  return row;
}

size_t longest_name(const std::vector<PipelineReport>& reports) {
  size_t longest = 0;
  for (const PipelineReport& report : reports)
    longest = std::max(longest, report.owner.name.size());
  return longest;
}

// ---- as SVG -----------------------------------------------------------------------

constexpr size_t kRow = 26, kBar = 22, kLetter = 7, kMargin = 8;  // pixels

// Colours that are told apart also by those who see fewer, on white and on black.
constexpr const char* kStyle =
    "<style>\n"
    "text { font: 12px system-ui, sans-serif; fill: #888; }\n"
    "text.bar { font-size: 11px; fill: #fff; text-anchor: middle; }\n"
    ".idle { fill: #8882; } .F { fill: #2f7ed8; } .B { fill: #c96a15; } .W { fill: #2a8d7f; }\n"
    "</style>\n";

std::string as_xml(const std::string& text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '&')
      escaped += "&amp;";
    else if (letter == '<')
      escaped += "&lt;";
    else
      escaped += letter;
  }
  return escaped;
}

std::string attribute(const char* name, size_t value) {
  return std::string(" ") + name + "=\"" + std::to_string(value) + "\"";
}

std::string text_at(size_t x, size_t y, const std::string& text, const char* more = "") {
  return "<text" + attribute("x", x) + attribute("y", y) + more + ">" + as_xml(text) + "</text>\n";
}

class SvgPicture {
 public:
  SvgPicture(const PipelineStep& step, const Extent& extent, size_t pixels)
      : reports_(step.reports),
        extent_(extent),
        pixels_(pixels),
        left_(2 * kMargin + kLetter * longest_name(step.reports)),
        with_stage_(std::ranges::any_of(step.reports, has_several_stages)) {}

  std::string draw() {
    for (size_t row = 0; row < reports_.size(); ++row) draw_row(row);
    draw_legend();
    const size_t width = left_ + pixels_ + kMargin;
    const size_t height = kRow * (reports_.size() + 1) + kMargin;
    std::string head = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) +
                       attribute("height", height) + "\nviewBox=\"0 0 " + std::to_string(width) +
                       " " + std::to_string(height) +
                       "\" role=\"img\" aria-label=\"who computed when\">\n";
    return head + kStyle + body_ + "</svg>\n";
  }

 private:
  void bar(const std::string& kind, size_t begin, size_t end, size_t row,
           const std::string& inside = "") {
    body_ += "<rect class=\"" + kind + "\"" + attribute("x", left_ + begin) +
             attribute("y", kRow * row) + attribute("width", end - begin) +
             attribute("height", kBar) + " rx=\"2\"";
    body_ += inside.empty() ? "/>\n" : ">\n<title>" + inside + "</title></rect>\n";
  }

  void draw_row(size_t row) {
    const PipelineReport& report = reports_[row];
    body_ += text_at(kMargin, kRow * row + 15, report.owner.name);
    bar("idle", 0, pixels_, row);
    for (const PipelineSpan& span : report.spans) draw_span(span, row);
  }

  void draw_span(const PipelineSpan& span, size_t row) {
    const size_t begin = extent_.column(span.begin, pixels_);
    size_t end = extent_.column(span.end, pixels_);
    if (end == begin) return;
    // One pixel stays free, so that neighbours are seen to be two.
    end = std::max(begin + 1, end - 1);
    bar(letter_of(span.action.pass), begin, end, row,
        to_string(span.action) + ", " + extent_.milliseconds(span.begin) + " to " +
            extent_.milliseconds(span.end) + " ms");
    const std::string label = label_of(span.action, with_stage_);
    if (kLetter * label.size() > end - begin) return;
    body_ += text_at(left_ + (begin + end) / 2, kRow * row + 15, label, " class=\"bar\"");
  }

  void draw_legend() {
    const size_t y = kRow * reports_.size() + 15;
    const std::string number = with_stage_ ? "stage:micro-batch" : "micro-batch";
    body_ += text_at(left_, y, "F forward, B backward, W weights, and the " + number);
    body_ += text_at(left_ + pixels_, y, extent_.milliseconds(extent_.end) + " ms",
                     " text-anchor=\"end\"");
  }

  const std::vector<PipelineReport>& reports_;
  const Extent extent_;
  const size_t pixels_;
  const size_t left_;
  const bool with_stage_;
  std::string body_;
};

}  // namespace

std::string svg_picture_of(const PipelineStep& step, size_t pixels) {
  const Extent extent = extent_of(step.reports);
  if (extent.begin >= extent.end) return {};
  return SvgPicture(step, extent, pixels).draw();
}

std::string picture_of(const PipelineStep& step, size_t columns) {
  const Extent extent = extent_of(step.reports);
  if (extent.begin >= extent.end) return {};
  const bool with_stage = std::ranges::any_of(step.reports, has_several_stages);
  const size_t longest = longest_name(step.reports);
  std::string picture;
  for (const PipelineReport& report : step.reports) {
    std::string name = report.owner.name;
    name.resize(longest, ' ');
    picture += name + "  " + row_of(report, extent, columns, with_stage) + "\n";
  }
  return picture;
}

}  // namespace rehearsal
