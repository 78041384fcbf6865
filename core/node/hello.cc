#include "core/node/hello.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <charconv>
#include <sstream>

#include "core/base/ids.h"

namespace rehearsal {
namespace {

constexpr std::string_view kFirstLine = "rehearsal 8";

Error refused(std::string text, const std::string& worker) {
  return {.kind = ErrorKind::protocol, .text = std::move(text), .worker = worker};
}

}  // namespace

std::string first_difference(const std::string& ours, const std::string& theirs) {
  std::istringstream our_lines(ours);
  std::istringstream their_lines(theirs);
  std::string our_line;
  std::string their_line;
  while (true) {
    const bool have_ours = static_cast<bool>(std::getline(our_lines, our_line));
    const bool have_theirs = static_cast<bool>(std::getline(their_lines, their_line));
    if (!have_ours) our_line = "nothing";
    if (!have_theirs) their_line = "nothing";
    if (our_line != their_line || !have_ours || !have_theirs)
      return "here " + our_line + ", there " + their_line;
  }
}

Greeting greeting_of_this_process(std::string name, size_t world_size, std::string functions) {
  return {.name = std::move(name),
          .world_size = world_size,
          .libtorch = TORCH_VERSION,
          .isa = at::get_cpu_capability(),
          .threads = at::get_num_threads(),
          .functions = std::move(functions)};
}

std::string to_text(const Greeting& greeting) {
  std::ostringstream out;
  out << kFirstLine << '\n'
      << greeting.name << '\n'
      << greeting.life << '\n'
      << greeting.world_size << '\n'
      << (greeting.dynamic ? "dynamic" : "static") << '\n'
      << greeting.peer_timeout.count() << '\n'
      << greeting.libtorch << '\n'
      << greeting.isa << '\n'
      << greeting.threads << '\n'
      << to_text(greeting.devices) << '\n'
      << greeting.functions;
  return out.str();
}

Result<Greeting> greeting_from_text(const std::string& text) {
  std::string_view rest = text;
  bool complete = true;
  const auto take_line = [&rest, &complete] {
    const size_t end = rest.find('\n');
    complete = complete && end != std::string_view::npos;
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(complete ? end + 1 : rest.size());
    return line;
  };
  Greeting greeting;
  const std::string_view first = take_line();
  greeting.name = take_line();
  const std::string_view life = take_line();
  const std::string_view world_size = take_line();
  const std::string_view kind = take_line();
  const std::string_view peer_timeout = take_line();
  greeting.libtorch = take_line();
  greeting.isa = take_line();
  const std::string_view threads = take_line();
  std::optional<WorkerDevices> devices = devices_from_text(take_line());
  if (!complete || first != kFirstLine) return refused("the peer speaks another version", "");
  const auto number = [](std::string_view digits, auto& value) {
    const char* end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value);
    return error == std::errc{} && at == end;
  };
  Duration::rep nanoseconds = 0;
  if (!number(life, greeting.life) || !number(world_size, greeting.world_size) ||
      !number(threads, greeting.threads) || (kind != "dynamic" && kind != "static") ||
      !number(peer_timeout, nanoseconds) || nanoseconds < 0 || !devices)
    return refused("the peer's greeting is malformed", greeting.name);
  if (greeting.life >= kLivesMax)
    return refused("worker '" + greeting.name + "' says that it has had " +
                       std::to_string(greeting.life) + " lives before; a worker has at most " +
                       std::to_string(kLivesMax) + ": start the whole group anew",
                   greeting.name);
  greeting.dynamic = kind == "dynamic";
  greeting.peer_timeout = Duration(nanoseconds);
  greeting.devices = *std::move(devices);
  greeting.functions = rest;
  return greeting;
}

Status check_greeting(const Greeting& ours, const Greeting& theirs,
                      const std::string& expected_name) {
  if (theirs.name != expected_name)
    return refused("the worker of this rank is named '" + theirs.name + "', not '" + expected_name +
                       "': all workers must run the same program",
                   theirs.name);
  if (theirs.world_size != ours.world_size)
    return refused("worker '" + theirs.name + "' expects " + std::to_string(theirs.world_size) +
                       " workers, not " + std::to_string(ours.world_size),
                   theirs.name);
  if (theirs.dynamic != ours.dynamic)
    return refused("worker '" + theirs.name + "' runs this program with a " +
                       (theirs.dynamic ? "dynamic" : "static") + " group, this worker with a " +
                       (ours.dynamic ? "dynamic" : "static") + " one",
                   theirs.name);
  if (theirs.functions != ours.functions)
    return refused("worker '" + theirs.name + "' has other functions registered: " +
                       first_difference(ours.functions, theirs.functions),
                   theirs.name);
  return Unit{};
}

bool same_arithmetic(const Greeting& ours, const Greeting& theirs) {
  return ours.libtorch == theirs.libtorch && ours.isa == theirs.isa &&
         ours.threads == theirs.threads;
}

}  // namespace rehearsal
