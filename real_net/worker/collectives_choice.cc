#include "real_net/worker/collectives_choice.h"

#include <utility>

#include "real_net/gloo/gloo_carriers.h"

namespace rehearsal::real {
namespace {

constexpr const char* kVariable = "REHEARSAL_COLLECTIVES";

}  // namespace

std::string_view name_of(Collectives collectives) {
  return collectives == Collectives::gloo ? "gloo" : "own";
}

Result<Collectives> choose_collectives(const std::string& text, const Environment& environment,
                                       const BesideCollectives& beside) {
  const std::string chosen = text.empty() ? environment(kVariable).value_or("") : text;
  const std::string typed = text.empty() ? kVariable + ("=" + chosen) : "--collectives " + chosen;
  if (chosen.empty() || chosen == "own") return Collectives::own;
  if (chosen != "gloo")
    return wrong_arguments(typed +
                           ": type own (the calls of the workers carry all) or gloo (it carries " +
                           "the large tensors of process groups)");
  if (!has_gloo())
    return wrong_arguments(
        typed + ": the LibTorch that this program was built with has no gloo; leave it out");
  if (beside.proves)
    return wrong_arguments(typed +
                           " and a secret or certificates (REHEARSAL_AUTH or --auth): gloo's " +
                           "connections prove nothing and hide nothing; leave one of them out");
  if (beside.is_recorded)
    return wrong_arguments(
        typed + " and --record: a record cannot hold what gloo brings; leave one of them " + "out");
  return Collectives::gloo;
}

}  // namespace rehearsal::real
