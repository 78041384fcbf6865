#include "sim/decisions/decision_words.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <stdexcept>

#include "net_fake/schedule.h"

namespace rehearsal::sim {
namespace {

using net_fake::Chain;

// Frames without a message are numbered apart, from here on.
constexpr uint64_t kUnsequenced = uint64_t{1} << 36;

class Words {
 public:
  Words(const Override& override, const std::vector<std::string>& names)
      : key_(override.key), value_(override.value), names_(names) {}

  std::string text() const;

 private:
  std::string worker(const LifeId& life) const {
    if (life.worker.value >= names_.size()) return "worker " + std::to_string(life.worker.value);
    return names_[life.worker.value];
  }
  std::string alive(const LifeId& life) const {
    return worker(life) + (life.life == 0 ? "" : " in life " + std::to_string(life.life + 1));
  }
  std::string link() const { return alive(key_.subject) + "→" + alive(key_.object) + ": "; }
  std::string frame() const {
    const bool message = (key_.number & kUnsequenced) == 0;
    const std::string number = std::to_string(key_.number & (kUnsequenced - 1));
    return (message ? "message " : "bare frame ") + number +
           (key_.occurrence == 0 ? "" : ", sent again (" + std::to_string(key_.occurrence) + ")");
  }
  std::string number() const { return std::to_string(key_.number); }
  std::string value() const { return std::to_string(value_); }
  std::string of_network() const;
  std::string of_machines_and_run() const;
  std::string held() const;

  const Key& key_;
  const uint64_t value_;
  const std::vector<std::string>& names_;
};

// The chain is spelt as in hold_key.
std::string Words::held() const {
  const std::string nth = std::to_string(key_.number + 1);
  std::string what;
  switch (static_cast<Chain::Kind>(key_.occurrence)) {
    case Chain::Kind::small_lane:
      what = worker(key_.subject) + "→" + worker(key_.object) + ": arrival " + nth;
      break;
    case Chain::Kind::large_lane:
      what = worker(key_.subject) + "→" + worker(key_.object) + ": large arrival " + nth;
      break;
    case Chain::Kind::news:
    case Chain::Kind::closing:
      what = worker(key_.subject) + ": news " + nth + " of its link to " + worker(key_.object);
      break;
    case Chain::Kind::connecting:
      what = worker(key_.subject) + "–" + worker(key_.object) + ": attempt " + nth + " to connect";
      break;
    case Chain::Kind::stack:
      what = worker(key_.subject) + ": step " + nth + " of stack " +
             std::to_string(key_.subject.life + 1);
      break;
    case Chain::Kind::timers:
      what = worker(key_.subject) + ": timer event " + nth;
      break;
    default:
      what = "event " + nth + " of nobody's";
  }
  return what + " lets " + value() + (value_ == 1 ? " other go first" : " others go first");
}

std::string Words::text() const {
  return key_.kind < DecisionKind::start ? of_network() : of_machines_and_run();
}

std::string Words::of_network() const {
  switch (key_.kind) {
    case DecisionKind::latency:
      return link() + frame() + " takes longer (" + value() + ")";
    case DecisionKind::retransmission:
      return link() + frame() + " is lost and sent again by the network";
    case DecisionKind::cut:
      return link() + "the link is cut at " + frame();
    case DecisionKind::partition:
      return link() + "a partition begins at " + frame();
    case DecisionKind::partition_shape:
      return "the shape of a partition is " + value();
    case DecisionKind::partition_length:
      return "a partition's length is halved " + value() + " times";
    case DecisionKind::partition_member:
      return worker(key_.subject) + " belongs to part " + value() + " of partition " + number();
    case DecisionKind::clog:
      return link() + "links are slowed or jammed from " + frame() + " on";
    case DecisionKind::clog_shape:
      return "which links are slowed or jammed, and how: " + value();
    case DecisionKind::clog_length:
      return "for how long links are slowed or jammed (" + value() + ")";
    case DecisionKind::corruption:
      return link() + "a bit of " + frame() + " flips";
    case DecisionKind::flipped_bit:
      return link() + "the bit of " + frame() + " that flips is " + value();
    case DecisionKind::hang:
      return link() + "attempt " + number() + " to connect is not answered";
    case DecisionKind::connect_latency:
      return link() + "attempt " + number() + " to connect takes longer (" + value() + ")";
    case DecisionKind::refusal:
      return link() + "attempt " + number() + " to connect is refused";
    case DecisionKind::back_off:
      return link() + "the wait before attempt " + number() + " is longer (" + value() + ")";
    case DecisionKind::lost_suffix:
      return link() + value() + " frames behind the cut are gone as well";
    case DecisionKind::notice_latency:
      return link() + "the loss of connection " + number() + " is heard of later (" + value() + ")";
    case DecisionKind::silence:
      return link() + "the loss of connection " + number() + " is not heard of";
    case DecisionKind::heal_latency:
      return link() + "the lane of connection " + number() + " moves again later (" + value() + ")";
    default:
      return "";
  }
}

std::string Words::of_machines_and_run() const {
  switch (key_.kind) {
    case DecisionKind::start:
      return alive(key_.subject) + ": an execution starts later (" + value() + ")";
    case DecisionKind::resume:
      return alive(key_.subject) + ": an execution goes on later (" + value() + ")";
    case DecisionKind::timer:
      return alive(key_.subject) + ": timer " + number() + " is late (" + value() + ")";
    case DecisionKind::boot:
      return alive(key_.subject) + ": starts later (" + value() + ")";
    case DecisionKind::pause:
      return alive(key_.subject) + ": its machine stands still before event " + number();
    case DecisionKind::pause_length:
      return alive(key_.subject) + ": for how long it stands still before event " + number() +
             " (" + value() + ")";
    case DecisionKind::clock_jump:
      return alive(key_.subject) + ": its clock jumps before event " + number();
    case DecisionKind::clock_jump_length:
      return alive(key_.subject) + ": how far its clock jumps before event " + number() + " (" +
             value() + ")";
    case DecisionKind::swarm:
      return "the faults of the run: property " + number() + " is " + value();
    case DecisionKind::crash_victim:
      return "crash " + number() + " is of " +
             (value_ < names_.size() ? names_[value_] : "worker " + value());
    case DecisionKind::crash_moment:
      return "the moment of crash " + number() + " (" + value() + ")";
    case DecisionKind::short_life:
      return link() + "its connections break behind a number of messages (" + value() + ")";
    case DecisionKind::vacancy:
      return alive(key_.subject) + ": its machine is gone with it, or its port refuses (" +
             value() + ")";
    case DecisionKind::madness:
      return "property " + number() + " of the mad worker is " + value();
    case DecisionKind::lie:
      return alive(key_.subject) + ": its lie after event " + number() + " (" + value() + ")";
    case DecisionKind::device:
      return alive(key_.subject) + ": draw " + number() + " of its devices is " + value();
    case DecisionKind::lending:
      return alive(key_.subject) + ": whether it can lend and borrow memory of devices (" +
             value() + ")";
    case DecisionKind::copied_parts:
      return alive(key_.subject) + ": in parts of how many bytes its devices copy to the host (" +
             value() + ")";
    case DecisionKind::restart:
      if (key_.subject.worker.value != UINT32_MAX)
        return alive(key_.subject) + ": whether and when it comes again when it has left (" +
               value() + ")";
      return "whether and when the worker of crash " + number() + " comes back (" + value() + ")";
    case DecisionKind::pick:
      return "choice " + number() + " of the strategy takes place " + value();
    case DecisionKind::priority:
      return "a priority of the strategy (" + value() + ")";
    case DecisionKind::plan:
      return "the strategy's plan: property " + number() + " is " + value();
    case DecisionKind::hold:
      return held();
    default:
      return "";
  }
}

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

bool is_plain(const std::string& name) {
  return !name.empty() && !is_digit(name.front()) &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 || letter == '_' || letter == '-';
         });
}

// Calls `change` for what stands in front of the point of each life in the key.
std::string change_workers(const std::string& text,
                           const std::function<std::string(const std::string&)>& change) {
  const size_t colon = text.find(':');
  const size_t end = text.find_first_of("@#", colon == std::string::npos ? text.size() : colon);
  if (end == std::string::npos) return text;
  std::string result = text.substr(0, colon + 1);
  for (size_t start = colon + 1; start < end;) {
    const size_t stop = std::min(text.find('>', start), end);
    const std::string life = text.substr(start, stop - start);
    const size_t point = life.rfind('.');
    result +=
        point == std::string::npos ? life : change(life.substr(0, point)) + life.substr(point);
    if (stop < end) result += '>';
    start = stop + 1;
  }
  return result + text.substr(end);
}

}  // namespace

std::string in_words(const Override& override, const std::vector<std::string>& names) {
  return Words(override, names).text();
}

bool says_where(const Override& override) {
  switch (override.key.kind) {
    case DecisionKind::swarm:
    case DecisionKind::madness:
    case DecisionKind::pick:
    case DecisionKind::priority:
    case DecisionKind::plan:
      return false;
    default:
      return true;
  }
}

std::string with_names(const std::string& text, const std::vector<std::string>& names) {
  return change_workers(text, [&names](const std::string& worker) {
    const bool number =
        !worker.empty() && worker.size() < 9 && std::all_of(worker.begin(), worker.end(), is_digit);
    const size_t place = number ? std::stoul(worker) : names.size();
    return place < names.size() && is_plain(names[place]) ? names[place] : worker;
  });
}

std::string with_numbers(const std::string& text, const std::vector<std::string>& names) {
  return change_workers(text, [&](const std::string& worker) {
    if (worker.empty() || is_digit(worker.front())) return worker;
    const auto found = std::find(names.begin(), names.end(), worker);
    if (found == names.end())
      throw std::invalid_argument("'" + text + "': the program has no worker '" + worker + "'");
    return std::to_string(found - names.begin());
  });
}

}  // namespace rehearsal::sim
