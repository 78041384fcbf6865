#include "sim/explain/history_file.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/base/json_bounds.h"
#include "record/json_number.h"

namespace rehearsal::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "rehearsal history 4";
constexpr size_t kFields = 18;

// User texts need not be UTF-8.
std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json json_of(const std::optional<AutogradNote>& note) {
  if (!note) return nullptr;
  return Json::array({note->context, note->epoch, note->starter, note->fast, note->carried,
                      note->about, note->wave});
}

std::optional<AutogradNote> note_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return AutogradNote{.context = json.at(0).get<std::string>(),
                      .epoch = record::number_of<uint64_t>(json.at(1)),
                      .starter = record::number_of<uint32_t>(json.at(2)),
                      .fast = json.at(3).get<bool>(),
                      .carried = json.at(4).get<std::string>(),
                      .about = json.at(5).get<std::vector<std::string>>(),
                      .wave = json.at(6).get<std::string>()};
}

Json json_of(const std::optional<StreamNote>& note) {
  if (!note) return nullptr;
  return Json::array({static_cast<uint64_t>(note->step), note->device, note->stream});
}

std::optional<StreamNote> stream_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  const auto step = record::number_of<uint64_t>(json.at(0));
  if (step > static_cast<uint64_t>(StreamNote::Step::awaited))
    throw std::runtime_error("unknown step");
  return StreamNote{.step = static_cast<StreamNote::Step>(step),
                    .device = record::number_of<uint32_t>(json.at(1)),
                    .stream = record::number_of<uint64_t>(json.at(2))};
}

Entry entry_of(const Json& json) {
  if (!json.is_array() || json.size() != kFields) throw std::runtime_error("no entry");
  const auto whole = [&json](size_t field) { return record::number_of<uint64_t>(json[field]); };
  const auto narrow = [&json](size_t field) { return record::number_of<uint32_t>(json[field]); };
  if (whole(0) >= kEntryKinds || whole(1) >= kEventKinds) throw std::runtime_error("unknown kind");
  if ((static_cast<EntryKind>(whole(0)) == EntryKind::device) == json[17].is_null())
    throw std::runtime_error("a device without its step, or a step of none");
  return {.kind = static_cast<EntryKind>(whole(0)),
          .event = static_cast<EventKind>(whole(1)),
          .when = Instant{Duration{record::number_of<int64_t>(json[2])}},
          .worker = narrow(3),
          .life = narrow(4),
          .peer = narrow(5),
          .peer_life = narrow(6),
          .id = json[7].get<std::string>(),
          .message_type = narrow(8),
          .number = whole(9),
          .attempt = whole(10),
          .bytes = whole(11),
          .text = json[12].get<std::string>(),
          .detail = json[13].get<std::string>(),
          .stack = json[14].get<std::string>(),
          .parent = json[15].get<std::string>(),
          .autograd = note_of(json[16]),
          .stream = stream_of(json[17])};
}

}  // namespace

void HistoryWriter::begin(const std::vector<std::string>& workers) {
  out_ << line_of({{"format", kFormat}, {"workers", workers}}) << std::flush;
}

void HistoryWriter::add(Entry entry) {
  out_ << line_of(
              Json::array({static_cast<uint64_t>(entry.kind), static_cast<uint64_t>(entry.event),
                           entry.when.time_since_epoch().count(), entry.worker, entry.life,
                           entry.peer, entry.peer_life, entry.id, entry.message_type, entry.number,
                           entry.attempt, entry.bytes, entry.text, entry.detail, entry.stack,
                           entry.parent, json_of(entry.autograd), json_of(entry.stream)}))
       << std::flush;
}

History read_history(std::istream& in) {
  History history;
  std::string line;
  size_t number = 0;
  try {
    while (std::getline(in, line)) {
      ++number;
      if (in.eof() && number > 1) break;  // Its end was not written.
      const Json json = parse_bounded<Json>(line);
      if (number > 1) {
        history.add(entry_of(json));
        continue;
      }
      if (json.at("format") != kFormat) throw std::runtime_error("another format");
      history.begin(json.at("workers").get<std::vector<std::string>>());
    }
  } catch (const std::exception&) {
    throw std::runtime_error("line " + std::to_string(number) + " is not of a history");
  }
  if (number == 0) throw std::runtime_error("it is empty, and no history");
  return history;
}

}  // namespace rehearsal::sim
