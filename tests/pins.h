// Results that no promise gives, and that nothing may change by accident: how many orders a program
// has, what a seed draws. They stand in one file for each folder of tests, pins.json; `./dev repin`
// renews all of these and shows what has changed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "tests/whole_file.h"

namespace rehearsal {

class Pins {
 public:
  // The folder of the tests, as seen from the root of the repository.
  explicit Pins(const std::filesystem::path& folder) : file_(folder / "pins.json") {}

  // Whether the file says that `name` is `value`. Where REHEARSAL_REPIN is set, it does so from now
  // on; several processes may write it at a time.
  [[nodiscard]] testing::AssertionResult hold(const std::string& name,
                                              const nlohmann::json& value) const {
    if (std::getenv("REHEARSAL_REPIN") != nullptr) {
      write(name, value);
      return testing::AssertionSuccess();
    }
    const nlohmann::json pins = read();
    const auto pin = pins.find(name);
    if (pin != pins.end() && *pin == value) return testing::AssertionSuccess();
    return testing::AssertionFailure() << name << ": " << value << ", but " << file_.string()
                                       << " says " << (pin == pins.end() ? "nothing" : pin->dump())
                                       << "; if this change was meant to change that: ./dev repin";
  }

 private:
  [[nodiscard]] nlohmann::json read() const {
    const std::string text = read_whole_file(file_);
    return text.empty() ? nlohmann::json::object() : nlohmann::json::parse(text);
  }

  void write(const std::string& name, const nlohmann::json& value) const {
    const int folder = open(file_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || flock(folder, LOCK_EX) != 0)
      throw std::runtime_error("cannot lock " + file_.parent_path().string());
    nlohmann::json pins = read();
    pins[name] = value;
    std::ofstream(file_) << pins.dump(1) << '\n';
    close(folder);
  }

  const std::filesystem::path file_;
};

}  // namespace rehearsal
