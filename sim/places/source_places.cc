#include "sim/places/source_places.h"

#include <backtrace.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string_view>

#include "core/base/symbols.h"

namespace rehearsal::sim {
namespace {

constexpr int kFramesMax = 128;

// Without debug information there is no line, without a symbol no name; that is no error.
void ignore(void*, const char*, int) {}

// One for the process: it can never be freed, and keeps what it has read of the program's file.
backtrace_state* state() {
  static backtrace_state* const made = backtrace_create_state(nullptr, /*threaded=*/1, ignore, {});
  return made;
}

struct Frame {
  std::string function;
  std::string file;
  int line = 0;
};

// The function of this address, those first that were inlined into it.
std::vector<Frame> frames_at(uintptr_t address) {
  std::vector<Frame> frames;
  const auto take = [](void* to, uintptr_t, const char* file, int line, const char* function) {
    static_cast<std::vector<Frame>*>(to)->push_back(
        {function == nullptr ? "" : function, file == nullptr ? "" : file, line});
    return 0;
  };
  backtrace_pcinfo(state(), address, take, ignore, &frames);
  return frames;
}

std::string symbol_at(uintptr_t address) {
  std::string symbol;
  const auto take = [](void* to, uintptr_t, const char* name, uintptr_t, uintptr_t) {
    if (name != nullptr) *static_cast<std::string*>(to) = name;
  };
  backtrace_syminfo(state(), address, take, ignore, &symbol);
  return symbol;
}

// "Model::push" of "training::Model::push": as far as a name tells, a class begins with a capital.
std::string without_namespaces(const std::string& name) {
  const size_t end = std::min(name.find('<'), name.size());
  size_t from = 0;
  for (size_t colons = name.find("::"); colons < end; colons = name.find("::", from)) {
    if (std::isupper(static_cast<unsigned char>(name[from])) != 0) break;
    from = colons + 2;
  }
  return name.substr(from);
}

// "Model::push": a name without namespaces and parameters.
std::string readable(std::string name) {
  for (const std::string_view noise : {"(anonymous namespace)::", "[abi:cxx11]"})
    for (size_t at = name.find(noise); at != std::string::npos; at = name.find(noise))
      name.erase(at, noise.size());
  // A lambda is named after the function that it stands in.
  const size_t lambda = std::min(name.find("::$_"), name.find("::{lambda"));
  name.resize(std::min({name.size(), name.find('('), lambda}));
  // A template's name begins with its result.
  if (const size_t space = name.find(' '); space < name.find('<')) name.erase(0, space + 1);
  name = without_namespaces(name);
  return lambda == std::string::npos ? name : "lambda in " + name;
}

bool is_of_program(uintptr_t address) {
  Dl_info info{};
  void* extra = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, &extra, RTLD_DL_LINKMAP) == 0) return false;
  return extra != nullptr && static_cast<const link_map*>(extra)->l_name[0] == '\0';
}

// Where the sources of this library lay when it was built: this function knows its own file.
const std::string& library_root() {
  static const std::string root = [] {
    constexpr std::string_view kHere = "sim/places/source_places.cc";
    for (const Frame& frame : frames_at(reinterpret_cast<uintptr_t>(&library_root)))
      if (frame.file.ends_with(kHere))
        return frame.file.substr(0, frame.file.size() - kHere.size());
    return std::string("/no source/");
  }();
  return root;
}

bool is_users(const std::string& file) {
  constexpr std::array<std::string_view, 7> kFolders = {
      "core/", "sim/", "net_fake/", "real_net/", "record/", "observe/", "command_line/"};
  constexpr std::array<std::string_view, 6> kOthers = {
      "/include/rehearsal/", "/include/c++/", "/torch/include/",
      "/usr/include/",       "/usr/lib/",     "/usr/local/include/"};
  if (!file.starts_with('/')) return false;
  for (const std::string_view other : kOthers)
    if (file.find(other) != std::string::npos) return false;
  if (!file.starts_with(library_root())) return true;
  const std::string_view inside = std::string_view(file).substr(library_root().size());
  return std::none_of(kFolders.begin(), kFolders.end(),
                      [inside](std::string_view folder) { return inside.starts_with(folder); });
}

// Of a program without line numbers only the names tell.
bool is_users_name(const std::string& name) {
  constexpr std::array<std::string_view, 9> kOthers = {
      "rehearsal::", "std::", "at::",    "c10::",        "torch::",
      "testing::",   "_",     "boost::", "make_fcontext"};
  // A template's name begins with its result.
  return !name.empty() && std::none_of(kOthers.begin(), kOthers.end(), [&](std::string_view other) {
    return name.starts_with(other) || name.find(" " + std::string(other)) != std::string::npos;
  });
}

}  // namespace

const std::vector<std::string>& SourcePlaces::at(void* return_address) {
  const auto [found, is_new] = known_.try_emplace(return_address);
  std::vector<std::string>& places = found->second;
  if (!is_new) return places;
  // It lies behind the call, perhaps already in the next function.
  const uintptr_t call = reinterpret_cast<uintptr_t>(return_address) - 1;
  const std::vector<Frame> frames = frames_at(call);
  const std::string symbol = demangled(symbol_at(call).c_str());
  for (size_t i = 0; i < frames.size(); ++i) {
    const auto& [function, file, line] = frames[i];
    if (file.empty() || !is_users(file)) continue;
    const bool is_inlined = i + 1 < frames.size();
    places.push_back(readable(is_inlined || symbol.empty() ? demangled(function.c_str()) : symbol) +
                     " " + file + ":" + std::to_string(line));
  }
  const bool has_lines = std::any_of(frames.begin(), frames.end(),
                                     [](const Frame& frame) { return !frame.file.empty(); });
  if (!has_lines && is_of_program(call) && is_users_name(symbol))
    places.push_back(readable(symbol));
  return places;
}

std::string SourcePlaces::calling_stack() {
  std::array<void*, kFramesMax> addresses{};
  const int count = backtrace(addresses.data(), kFramesMax);
  return stack_of(std::span(addresses).subspan(1, static_cast<size_t>(std::max(count, 1) - 1)));
}

std::string SourcePlaces::stack_of(std::span<void* const> return_addresses) {
  std::vector<std::string> places;
  for (void* const address : return_addresses) {
    const std::vector<std::string>& here = at(address);
    places.insert(places.end(), here.begin(), here.end());
  }
  // Where some have lines, those that have none are of libraries.
  const auto has_line = [](const std::string& place) { return place.find(" /") != place.npos; };
  if (std::any_of(places.begin(), places.end(), has_line))
    std::erase_if(places, [&](const std::string& place) { return !has_line(place); });
  std::string text;
  for (const std::string& place : places) text += place + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

std::string short_place(const std::string& stack) {
  const std::string first = stack.substr(0, stack.find('\n'));
  const size_t file = first.rfind(' ');
  if (file == std::string::npos) return {};
  const size_t folder = first.rfind('/');
  return first.substr((folder == std::string::npos || folder < file ? file : folder) + 1);
}

}  // namespace rehearsal::sim
