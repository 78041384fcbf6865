#include "command_line/spin_flag.h"

#include "command_line/wrong_use.h"
#include "real_net/worker/spin_choice.h"

namespace rehearsal::command_line {

std::string parse_spin(const Flags& flags, Net net) {
  if (net == Net::sim) {
    if (!flags.spin.empty())
      throw WrongUse("--spin " + flags.spin + " needs --net tcp: nothing waits in a simulated run");
    return "";
  }
  const Result<Duration> chosen = real::choose_spin(flags.spin, real::process_environment);
  if (!chosen.ok()) throw WrongUse(chosen.error().text);
  return flags.spin;
}

}  // namespace rehearsal::command_line
