// A headless Chromium that a test drives over the DevTools protocol, by a pipe: no other program
// and no port is needed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace rehearsal::sim {

// Owns the browser's processes: the destructor ends them, and removes their files. Every wait is
// bounded; what goes wrong is thrown as std::runtime_error.
class Browser {
 public:
  using Json = nlohmann::ordered_json;

  // Throws with a line that says what to install if there is no Chromium.
  Browser();
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  // Opens a file and waits until it has loaded.
  void open(const std::string& file);

  // The value of an expression of JavaScript on the page, after the page has drawn itself anew.
  Json evaluate(const std::string& expression);

  // As a person does it.
  void press(const std::string& key);
  void type(const std::string& text);
  void click(const std::string& selector);  // the middle of the first element

  void prefer_dark(bool dark);
  void save_screenshot(const std::string& file);

  // Errors of the console, exceptions that nobody caught, and requests for anything but the file.
  [[nodiscard]] const std::vector<std::string>& complaints() const { return complaints_; }

 private:
  Json call(const std::string& method, const Json& parameters = Json::object());
  void start(const std::string& program);
  void write_message(const Json& message);
  Json read_message();
  void note(const Json& event);

  pid_t process_ = -1;
  int to_ = -1;
  int from_ = -1;
  const TemporaryFolder folder_;
  std::string unread_;
  std::string session_;
  std::string url_;
  uint64_t last_id_ = 0;
  bool loaded_ = false;
  std::vector<std::string> complaints_;
};

}  // namespace rehearsal::sim
