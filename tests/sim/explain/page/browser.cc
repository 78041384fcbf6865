#include "tests/sim/explain/page/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace rehearsal::sim {
namespace {

constexpr int kAnswerSecondsMax = 120;  // a loaded machine starts a browser slowly
constexpr int kInput = 3;               // where --remote-debugging-pipe reads …
constexpr int kOutput = 4;              // … and writes

std::string program_in_path() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
      if (const std::string file = folder + "/" + name; access(file.c_str(), X_OK) == 0)
        return file;
  throw std::runtime_error(
      "Chromium is missing: './dev test' installs it, or install the Debian package chromium");
}

std::string decoded(const std::string& base64) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char letter : base64) {
    static const std::string kLetters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t value = kLetters.find(letter);
    if (value == std::string::npos) break;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  return bytes;
}

}  // namespace

Browser::Browser() {
  const std::string program = program_in_path();
  start(program);
  const Json target = call("Target.createTarget", {{"url", "about:blank"}});
  const Json attached =
      call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}});
  session_ = attached.at("sessionId").get<std::string>();
  for (const char* domain : {"Page", "Runtime", "Log", "Network"})
    call(std::string(domain) + ".enable");
}

void Browser::start(const std::string& program) {
  std::array<int, 2> input{};
  std::array<int, 2> output{};
  if (pipe2(input.data(), O_CLOEXEC) != 0 || pipe2(output.data(), O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  const std::string data = "--user-data-dir=" + folder_.file("data");
  const std::string log = folder_.file("log");
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);  // so that all its processes can be ended together
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Out of the way of 3 and 4 first.
    const int reading = fcntl(input[0], F_DUPFD, 10);
    const int writing = fcntl(output[1], F_DUPFD, 10);
    dup2(reading, kInput);
    dup2(writing, kOutput);
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    // A container has no user namespaces for the sandbox; the page is our own.
    execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
          "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
          "--disable-background-networking", "--remote-debugging-pipe", "--window-size=1440,900",
          data.c_str(), "about:blank", nullptr);
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  to_ = input[1];
  from_ = output[0];
  signal(SIGPIPE, SIG_IGN);
}

Browser::~Browser() {
  if (process_ > 0) {
    kill(-process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  close(to_);
  close(from_);
}

void Browser::write_message(const Json& message) {
  const std::string text = message.dump() + '\0';
  for (size_t written = 0; written < text.size();) {
    const ssize_t now = write(to_, text.data() + written, text.size() - written);
    if (now <= 0) throw std::runtime_error("the browser has ended");
    written += static_cast<size_t>(now);
  }
}

Browser::Json Browser::read_message() {
  while (true) {
    const size_t end = unread_.find('\0');
    if (end != std::string::npos) {
      Json message = Json::parse(unread_.substr(0, end));
      unread_.erase(0, end + 1);
      return message;
    }
    pollfd ready{.fd = from_, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, kAnswerSecondsMax * 1000) <= 0)
      throw std::runtime_error("the browser does not answer");
    std::array<char, 65536> bytes{};
    const ssize_t size = read(from_, bytes.data(), bytes.size());
    if (size <= 0) {
      std::ifstream log(folder_.file("log"));
      std::ostringstream text;
      text << log.rdbuf();
      throw std::runtime_error("the browser has ended: " + text.str());
    }
    unread_.append(bytes.data(), static_cast<size_t>(size));
  }
}

Browser::Json Browser::call(const std::string& method, const Json& parameters) {
  Json request{{"id", ++last_id_}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) request["sessionId"] = session_;
  write_message(request);
  while (true) {
    const Json message = read_message();
    if (!message.contains("id")) {
      note(message);
      continue;
    }
    if (message.at("id") != last_id_) continue;
    if (message.contains("error"))
      throw std::runtime_error(method + ": " + message.at("error").dump());
    return message.at("result");
  }
}

void Browser::note(const Json& event) {
  const std::string method = event.at("method").get<std::string>();
  const Json& parameters = event.at("params");
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Runtime.exceptionThrown") complaints_.push_back(parameters.dump());
  if (method == "Log.entryAdded" && parameters.at("entry").at("level") == "error")
    complaints_.push_back(parameters.dump());
  if (method == "Runtime.consoleAPICalled" &&
      (parameters.at("type") == "error" || parameters.at("type") == "warning"))
    complaints_.push_back(parameters.dump());
  if (method == "Network.requestWillBeSent") {
    const std::string url = parameters.at("request").at("url").get<std::string>();
    if (url != url_ && !url.starts_with("data:")) complaints_.push_back("asks for " + url);
  }
}

void Browser::open(const std::string& file) {
  url_ = "file://" + std::filesystem::absolute(file).string();
  loaded_ = false;
  call("Page.navigate", {{"url", url_}});
  while (!loaded_) {
    const Json message = read_message();
    if (!message.contains("id")) note(message);
  }
}

Browser::Json Browser::evaluate(const std::string& expression) {
  // Twice, as the first callback comes before what was asked for is drawn.
  const std::string drawn =
      "new Promise((done, fail) => requestAnimationFrame(() => requestAnimationFrame(() => { try { "
      "done(" +
      expression + ") } catch (error) { fail(error) } })))";
  const Json answer = call(
      "Runtime.evaluate", {{"expression", drawn}, {"returnByValue", true}, {"awaitPromise", true}});
  if (answer.contains("exceptionDetails"))
    throw std::runtime_error(expression + ": " + answer.at("exceptionDetails").dump());
  const Json& result = answer.at("result");
  return result.contains("value") ? result.at("value") : Json();
}

void Browser::press(const std::string& key) {
  Json down{{"type", "keyDown"}, {"key", key}};
  if (key.size() == 1) down["text"] = key;
  call("Input.dispatchKeyEvent", down);
  call("Input.dispatchKeyEvent", {{"type", "keyUp"}, {"key", key}});
}

void Browser::type(const std::string& text) { call("Input.insertText", {{"text", text}}); }

void Browser::click(const std::string& selector) {
  const Json box = evaluate(
      "(({x, y, width, height}) => [x + Math.min(width, 400) / 2, "
      "y + height / 2])(document.querySelector(" +
      Json(selector).dump() + ").getBoundingClientRect())");
  for (const char* type : {"mousePressed", "mouseReleased"})
    call("Input.dispatchMouseEvent", {{"type", type},
                                      {"x", box.at(0)},
                                      {"y", box.at(1)},
                                      {"button", "left"},
                                      {"clickCount", 1}});
}

void Browser::prefer_dark(bool dark) {
  call("Emulation.setEmulatedMedia",
       {{"features",
         Json::array({{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}})}});
}

void Browser::save_screenshot(const std::string& file) {
  const Json answer = call("Page.captureScreenshot", {{"format", "png"}});
  std::ofstream(file, std::ios::binary) << decoded(answer.at("data").get<std::string>());
}

}  // namespace rehearsal::sim
