#include "sim/explain/autograd_note.h"

#include <variant>

namespace rehearsal::sim {
namespace {

AutogradNote of_pass(const PassName& pass) {
  return {.context = to_string(pass.id.context),
          .epoch = pass.id.epoch,
          .starter = pass.starter.value,
          .fast = pass.mode == PassMode::fast,
          .carried = {},
          .about = {},
          .wave = {}};
}

std::optional<AutogradNote> of_recorded(const std::optional<AutogradMetadata>& autograd) {
  if (!autograd) return std::nullopt;
  AutogradNote note;
  note.context = to_string(autograd->context);
  note.carried = to_string(autograd->message);
  return note;
}

const char* name_of(PassWave wave) {
  switch (wave) {
    case PassWave::check:
      return "check";
    case PassWave::resume:
      return "resume";
    case PassWave::commit:
      return "commit";
  }
  return "";
}

struct Noting {
  using Note = std::optional<AutogradNote>;

  Note operator()(const Call& call) const { return of_recorded(call.autograd); }
  Note operator()(const Response& response) const { return of_recorded(response.autograd); }
  Note operator()(const Item& item) const { return of_recorded(item.autograd); }
  Note operator()(const Gradients& gradients) const {
    AutogradNote note = of_pass(gradients.pass);
    note.about.push_back(to_string(gradients.message));
    if (gradients.autograd) note.carried = to_string(gradients.autograd->message);
    return note;
  }
  Note operator()(const GradientsAnswered& answered) const {
    AutogradNote note = of_pass(answered.pass);
    note.about.push_back(to_string(answered.message));
    return note;
  }
  Note operator()(const Marks& marks) const {
    AutogradNote note = of_pass(marks.pass);
    for (const Mark& mark : marks.marks) note.about.push_back(to_string(mark.message));
    return note;
  }
  Note operator()(const MarksAnswered& answered) const { return of_pass(answered.pass); }
  Note operator()(const PassFinish& finish) const {
    AutogradNote note = of_pass(finish.pass);
    note.wave = name_of(finish.wave);
    return note;
  }
  Note operator()(const PassFinished& finished) const { return of_pass(finished.pass); }
  Note operator()(const PassFailed& failed) const { return of_pass(failed.pass); }
  template <class Other>
  Note operator()(const Other&) const {
    return std::nullopt;
  }
};

}  // namespace

std::optional<AutogradNote> autograd_note(const Message& message) {
  return std::visit(Noting{}, message.content);
}

std::optional<AutogradNote> autograd_note(const Event& event) {
  if (event.kind != EventKind::pass_started && event.kind != EventKind::pass_ended)
    return std::nullopt;
  AutogradNote note;
  note.context = to_string(event.id);
  note.epoch = event.number;
  note.starter = event.peer.value;
  return note;
}

PassTraffic pass_traffic(std::string_view message_name) {
  if (message_name.starts_with("Gradients")) return PassTraffic::gradients;
  if (message_name.starts_with("Marks")) return PassTraffic::marks;
  return message_name.starts_with("Pass") ? PassTraffic::waves : PassTraffic::none;
}

}  // namespace rehearsal::sim
