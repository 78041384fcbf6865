#include "sim/explain/html_page.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <tuple>
#include <vector>

#include "sim/explain/call_chain.h"
#include "sim/explain/page/page_parts.h"

namespace rehearsal::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kStoryWeightMin = 10;
constexpr size_t kStoryMoments = 80;  // the ends of messages that they begin with come on top

// Each text once; the page names them by their place.
class Strings {
 public:
  size_t place(std::string_view text) {
    const auto [found, is_new] = places_.try_emplace(std::string(text), places_.size());
    if (is_new) list_.push_back(std::string(text));
    return found->second;
  }
  Json take() { return std::move(list_); }

 private:
  std::map<std::string, size_t> places_;
  Json list_ = Json::array();
};

int64_t or_nobody(uint32_t worker) { return worker == kNoWorker ? -1 : int64_t{worker}; }

int64_t or_none(const std::optional<size_t>& number) {
  return number ? static_cast<int64_t>(*number) : -1;
}

// The streams of devices that did anything: each has a lane beside its worker's.
class Streams {
 public:
  // -1: it is no step of a stream.
  int64_t place(const Entry& entry) {
    if (!entry.stream) return -1;
    const auto [found, is_new] = places_.try_emplace(
        {entry.worker, entry.stream->device, entry.stream->stream}, places_.size());
    if (is_new)
      list_.push_back(Json::array({entry.worker,
                                   "sim:" + std::to_string(entry.stream->device) + "/" +
                                       std::to_string(entry.stream->stream),
                                   stream_name(*entry.stream)}));
    return static_cast<int64_t>(found->second);
  }
  Json take() { return std::move(list_); }

 private:
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, size_t> places_;
  Json list_ = Json::array();
};

// Which moments the short version shows.
std::vector<bool> story_of(const Chronicle& chronicle, const Subject& subject) {
  const std::vector<double> weights = weigh(chronicle, subject);
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&weights](size_t one, size_t other) { return weights[one] > weights[other]; });
  order.resize(std::min(order.size(), kStoryMoments));
  std::vector<bool> story(weights.size(), false);
  for (const size_t number : order) {
    if (weights[number] < kStoryWeightMin) break;
    story[number] = true;
    if (const auto message = chronicle.moments[number].message) {
      const MessageTrip& trip = chronicle.messages[*message];
      story[trip.sent] = true;
      if (trip.arrived) story[*trip.arrived] = true;
    }
  }
  return story;
}

// The order of the fields is model.js's.
Json moment_json(const Chronicle& chronicle, const Moment& moment, bool in_story, Strings& strings,
                 Streams& streams) {
  const Entry& entry = moment.entry;
  const bool is_frame = moment.message.has_value() || entry.event == EventKind::frame;
  Json json = Json::array({strings.place(name_of(moment)), entry.when.time_since_epoch().count(),
                           or_nobody(entry.worker), entry.life, or_nobody(entry.peer),
                           is_frame ? entry.number : 0, entry.attempt, entry.bytes,
                           strings.place(entry.id), strings.place(text_of(chronicle, moment)),
                           strings.place(entry.detail), strings.place(moment.tables),
                           or_none(moment.message), in_story ? 1 : 0, strings.place(entry.stack),
                           strings.place(message_of(moment)), streams.place(entry)});
  for (const size_t cause : moment.causes) json.push_back(cause);
  return json;
}

Json thrown_json(const Chronicle& chronicle) {
  Json lines = Json::array();
  for (const ThrownLine& line : thrown_lines(chronicle, kPlacesShown))
    lines.push_back(Json::array({line.text, line.moment}));
  return lines;
}

// The backward passes, and what the moments have to do with them. The order of the fields is
// passes.js's.
struct PassesJson {
  PassesJson(const Chronicle& chronicle, Strings& strings) {
    for (size_t i = 0; i < chronicle.moments.size(); ++i) {
      const std::optional<AutogradNote>& note = chronicle.moments[i].entry.autograd;
      if (!note) continue;
      Json json = Json::array({i, note->epoch == 0 ? -1 : place_of(*note, strings),
                               strings.place(note->context), strings.place(note->carried),
                               strings.place(note->wave)});
      for (const std::string& id : note->about) json.push_back(strings.place(id));
      notes.push_back(std::move(json));
    }
  }

  Json passes = Json::array();
  Json notes = Json::array();

 private:
  int64_t place_of(const AutogradNote& note, Strings& strings) {
    const auto [found, is_new] =
        places_.try_emplace({note.context, note.epoch, note.starter}, passes.size());
    if (is_new)
      passes.push_back(
          Json::array({strings.place(note.context), note.epoch, or_nobody(note.starter), 0}));
    if (note.fast) passes[found->second][3] = 1;
    return static_cast<int64_t>(found->second);
  }

  std::map<std::tuple<std::string, uint64_t, uint32_t>, size_t> places_;
};

Json run_json(const Chronicle& chronicle, const Subject& subject) {
  const std::vector<bool> story = story_of(chronicle, subject);
  Strings strings;
  Streams streams;
  Json moments = Json::array();
  for (size_t i = 0; i < chronicle.moments.size(); ++i)
    moments.push_back(moment_json(chronicle, chronicle.moments[i], story[i], strings, streams));
  Json messages = Json::array();
  for (const MessageTrip& trip : chronicle.messages)
    messages.push_back(Json::array({trip.sent, or_none(trip.arrived), or_none(trip.lost_at)}));
  PassesJson passes(chronicle, strings);
  Json json{{"title", subject.title},
            {"failure", subject.failure},
            {"command", subject.command},
            {"workers", chronicle.workers},
            {"streams", streams.take()},
            {"failedAt", or_none(chronicle.failed_at)},
            {"thrownAt", or_none(call_chain(chronicle).origin)},
            {"thrown", thrown_json(chronicle)},
            {"shutdownFrom", or_none(chronicle.shutdown_from)},
            {"shutdownMessages", shutdown_messages(chronicle)},
            {"critical", nullptr},
            {"notes", subject.notes},
            {"strings", strings.take()},
            {"messages", std::move(messages)},
            {"moments", std::move(moments)},
            {"passes", std::move(passes.passes)},
            {"autograd", std::move(passes.notes)}};
  if (subject.critical)
    json["critical"] = {{"first", subject.critical->first},
                        {"second", or_none(subject.critical->second)},
                        {"lines", lines_of(chronicle, *subject.critical)}};
  return json;
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  text.replace(text.find(what), what.size(), by);
}

}  // namespace

std::string html_page(const Chronicle& chronicle, const Subject& subject) {
  const std::string json =
      run_json(chronicle, subject).dump(-1, ' ', false, Json::error_handler_t::replace);
  // Nothing that a user's text says may end the element that it stands in.
  std::string history;
  for (const char letter : json) {
    if (letter == '<') {
      history += "\\u003c";
    } else {
      history += letter;
    }
  }
  std::string page(kPageHtml);
  replace(page, "{{script}}", kPageScript);
  replace(page, "{{history}}", history);
  replace(page, "{{css}}", kPageCss);
  return page;
}

}  // namespace rehearsal::sim
