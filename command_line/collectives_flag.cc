#include "command_line/collectives_flag.h"

#include "command_line/wrong_use.h"
#include "real_net/worker/collectives_choice.h"
#include "real_net/worker/proof.h"

namespace rehearsal::command_line {

std::string parse_collectives(const Flags& flags, const RunSettings& settings) {
  if (settings.net == Net::sim) {
    if (!flags.collectives.empty())
      throw WrongUse("--collectives " + flags.collectives +
                     " needs --net tcp: in a simulated run calls carry all");
    return "";
  }
  // A proof that is wrong is refused where it is chosen.
  const Result<real::Auth> auth = real::choose_auth(flags.auth, real::process_environment);
  const auto chosen = real::choose_collectives(flags.collectives, real::process_environment,
                                               {.is_recorded = !settings.record_folder.empty(),
                                                .proves = auth.ok() && auth.value().proves()});
  if (!chosen.ok()) throw WrongUse(chosen.error().text);
  return flags.collectives;
}

}  // namespace rehearsal::command_line
