#include "real_net/worker/group_card.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/hash.h"
#include "core/base/json_bounds.h"
#include "core/base/printable.h"
#include "core/node/hello.h"

namespace rehearsal::real {
namespace {

using Json = nlohmann::json;

constexpr size_t kListedMax = 8;
constexpr size_t kSettingsMax = 1'000;
constexpr size_t kSettingNameBytesMax = 200;
constexpr size_t kSettingBytesMax = 1'000;
constexpr size_t kSettingBeginning = 200;  // of one that is longer

const char* kind_of(const GroupCard& card) { return card.dynamic ? "dynamic" : "static"; }

std::string value_in(const std::map<std::string, std::string>& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "not given" : "'" + found->second + "'";
}

std::string in_card(const std::string& value) {
  if (value.size() <= kSettingBytesMax && printable(value) == value) return value;
  return printable(value.substr(0, kSettingBeginning)) + "… (" + std::to_string(value.size()) +
         " bytes, hash " + std::to_string(hash_bytes(value.data(), value.size())) + ")";
}

}  // namespace

Result<std::map<std::string, std::string>> card_settings(
    const std::map<std::string, std::string>& must_agree) {
  const auto refuse = [](const std::string& why) {
    return Error{.kind = ErrorKind::bad_arguments, .text = "must_agree " + why};
  };
  if (must_agree.size() > kSettingsMax)
    return refuse("has " + std::to_string(must_agree.size()) + " settings; at most " +
                  std::to_string(kSettingsMax) + " are compared: join them in one text");
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : must_agree) {
    const std::string shown = printable(name.substr(0, kSettingNameBytesMax));
    if (name.empty() || shown != name)
      return refuse("has a setting whose name is not a text of 1 to " +
                    std::to_string(kSettingNameBytesMax) + " bytes: '" + shown + "'");
    settings[name] = in_card(value);
  }
  return settings;
}

std::string begun_now(const std::string& worker) {
  std::array<char, 64> when{};
  std::array<char, 256> host{};
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(when.data(), when.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
  gethostname(host.data(), host.size() - 1);
  return std::string(when.data()) + " by " + worker + ", process " + std::to_string(getpid()) +
         " on " + host.data();
}

std::string encode(const GroupCard& card) {
  return Json{
      {"run", card.run},           {"dynamic", card.dynamic},     {"names", card.names},
      {"libtorch", card.libtorch}, {"functions", card.functions}, {"settings", card.settings},
      {"begun", card.begun}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<GroupCard> decode_card(const std::string& text) {
  try {
    const Json json = parse_bounded<Json>(text);
    return GroupCard{.run = json.at("run").get<std::string>(),
                     .dynamic = json.at("dynamic").get<bool>(),
                     .names = json.at("names").get<std::vector<std::string>>(),
                     .libtorch = json.at("libtorch").get<std::string>(),
                     .functions = json.at("functions").get<std::string>(),
                     .settings = json.at("settings").get<std::map<std::string, std::string>>(),
                     .begun = json.at("begun").get<std::string>()};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<std::string> difference(const GroupCard& ours, const GroupCard& theirs) {
  const auto differ = [](const std::string& what, const std::string& here,
                         const std::string& there) {
    return what + " " + here + " here, " + there + " there";
  };
  if (ours.dynamic != theirs.dynamic) return differ("the group is", kind_of(ours), kind_of(theirs));
  if (ours.names.size() != theirs.names.size())
    return differ("the program has",
                  std::to_string(ours.names.size()) + " workers (" + listed(ours.names) + ")",
                  std::to_string(theirs.names.size()) + " (" + listed(theirs.names) + ")");
  for (size_t rank = 0; rank < ours.names.size(); ++rank)
    if (ours.names[rank] != theirs.names[rank])
      return differ("rank " + std::to_string(rank) + " is named", "'" + ours.names[rank] + "'",
                    "'" + theirs.names[rank] + "'");
  std::set<std::string> settings;
  for (const auto* card : {&ours, &theirs})
    for (const auto& [name, value] : card->settings) settings.insert(name);
  for (const std::string& name : settings)
    if (value_in(ours.settings, name) != value_in(theirs.settings, name))
      return differ(name + " is", value_in(ours.settings, name), value_in(theirs.settings, name));
  if (ours.functions != theirs.functions)
    return "the registered functions differ: " + first_difference(ours.functions, theirs.functions);
  if (ours.libtorch != theirs.libtorch)
    return differ("LibTorch is", ours.libtorch, theirs.libtorch);
  return std::nullopt;
}

std::string describe(const GroupCard& card) {
  std::string text = std::string("a ") + kind_of(card) + " group";
  if (!card.names.empty())
    text += " of " + std::to_string(card.names.size()) + " workers (" + listed(card.names) + ")";
  return text + ", " + run_in_words(card.run) + ", begun " + card.begun;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kListedMax); ++i)
    text += (i == 0 ? "'" : ", '") + names[i] + "'";
  if (names.size() > kListedMax)
    text += " and " + std::to_string(names.size() - kListedMax) + " more";
  return text;
}

std::string run_in_words(const std::string& run) {
  return run.empty() ? "a run without an id" : "run '" + run + "'";
}

}  // namespace rehearsal::real
