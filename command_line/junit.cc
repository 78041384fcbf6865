#include "command_line/junit.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "core/base/printable.h"

namespace rehearsal::command_line {
namespace {

// XML has no way to write most control characters, nor what is no UTF-8.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char letter : printable_lines(text)) {
    switch (letter) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
        result += "&#10;";
        break;
      default:
        result += letter;
    }
  }
  return result;
}

void write_case(std::ostream& out, const std::string& suite, const JunitCase& test) {
  out << "    <testcase classname=\"" << escaped(suite) << "\" name=\"" << escaped(test.name)
      << "\" time=\"" << test.seconds << "\">\n";
  if (!test.properties.empty()) {
    out << "      <properties>\n";
    for (const auto& [name, value] : test.properties)
      out << "        <property name=\"" << escaped(name) << "\" value=\"" << escaped(value)
          << "\"/>\n";
    out << "      </properties>\n";
  }
  if (test.failure) {
    const std::string text = to_text(*test.failure);
    const std::string first_line = text.substr(0, text.find('\n'));
    out << "      <failure type=\"" << escaped(test.failure->oracle) << "\" message=\""
        << escaped(first_line) << "\">" << escaped(text + "\n" + test.replay) << "</failure>\n"
        << "      <system-out>" << escaped(test.replay) << "</system-out>\n";
  }
  out << "    </testcase>\n";
}

}  // namespace

std::string junit_text(const std::string& command, const std::vector<JunitCase>& cases) {
  const std::string suite = "rehearsal " + command;
  const auto failures =
      std::count_if(cases.begin(), cases.end(), [](const JunitCase& test) { return test.failure; });
  double seconds = 0;
  for (const JunitCase& test : cases) seconds += test.seconds;
  std::ostringstream out;
  out << std::fixed << std::setprecision(3);
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\""
      << escaped(suite) << "\" tests=\"" << cases.size() << "\" failures=\"" << failures
      << "\" errors=\"0\" time=\"" << seconds << "\">\n";
  for (const JunitCase& test : cases) write_case(out, suite, test);
  out << "  </testsuite>\n</testsuites>\n";
  return out.str();
}

}  // namespace rehearsal::command_line
