#include "command_line/coverage_text.h"

#include <algorithm>
#include <stdexcept>

#include "record/json_number.h"
#include "sim/world/coverage.h"

namespace rehearsal::command_line {
namespace {

constexpr size_t kNameWidth = 18;
constexpr size_t kLineWidth = 100;

// "a", "b", … "z", "A", …
char letter_of(size_t column) {
  constexpr size_t kAlphabet = 26;
  return static_cast<char>(column < kAlphabet ? 'a' + column : 'A' + column - kAlphabet);
}

char digit_of(const CoverageCounts& counts, uint32_t number) {
  const auto found = counts.find(number);
  if (found == counts.end()) return '.';
  const size_t digits = std::to_string(found->second).size();
  return static_cast<char>('0' + std::min<size_t>(digits - 1, 9));
}

std::string in_width(const std::string& name) {
  return name + std::string(kNameWidth - std::min(name.size(), kNameWidth), ' ');
}

// "  a nothing, b owners, …" in lines.
std::string legend_of(const sim::CoverageTable& table) {
  std::string text;
  std::string line = " ";
  for (size_t column = 0; column < table.columns.size(); ++column) {
    const bool is_last = column + 1 == table.columns.size();
    const std::string entry =
        std::string(" ") + letter_of(column) + " " + table.columns[column] + (is_last ? "" : ",");
    if (line.size() + entry.size() > kLineWidth) {
      text += line + "\n";
      line = " ";
    }
    line += entry;
  }
  return text + line + "\n";
}

std::string text_of(const sim::CoverageTable& table, const CoverageCounts& counts) {
  std::string text = "coverage of " + table.title + ":\n" + in_width("");
  for (size_t column = 0; column < table.columns.size(); ++column)
    text += std::string(" ") + letter_of(column);
  text += "\n";
  for (size_t row = 0; row < table.rows.size(); ++row) {
    text += in_width(table.rows[row]);
    for (size_t column = 0; column < table.columns.size(); ++column)
      text += std::string(" ") + digit_of(counts, table.number(row, column));
    text += "\n";
  }
  return text + legend_of(table);
}

size_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) throw std::invalid_argument(name + ": there is no such name");
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

std::string coverage_text(const CoverageCounts& counts) {
  std::string text = "A digit is the power of ten of the number of runs; a dot: it came in none.\n";
  for (const sim::CoverageTable& table : sim::coverage_tables()) text += text_of(table, counts);
  return text;
}

Json coverage_json(const CoverageCounts& counts) {
  Json json = Json::object();
  for (const sim::CoverageTable& table : sim::coverage_tables()) {
    Json& rows = json[table.name] = Json::object();
    for (size_t row = 0; row < table.rows.size(); ++row)
      for (size_t column = 0; column < table.columns.size(); ++column)
        if (const auto found = counts.find(table.number(row, column)); found != counts.end())
          rows[table.rows[row]][table.columns[column]] = found->second;
  }
  return json;
}

CoverageCounts coverage_from_json(const Json& json) {
  CoverageCounts counts;
  for (const sim::CoverageTable& table : sim::coverage_tables())
    for (const auto& [row, columns] : json.at(table.name).items())
      for (const auto& [column, runs] : columns.items())
        counts[table.number(place_of(table.rows, row), place_of(table.columns, column))] =
            record::number_of<uint64_t>(runs);
  return counts;
}

}  // namespace rehearsal::command_line
