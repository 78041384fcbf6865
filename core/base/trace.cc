#include "core/base/trace.h"

namespace rehearsal {

std::string call_text(CallForm form, std::string_view function, std::string_view caller,
                      std::string_view callee) {
  std::string text = "rpc_sync#";
  if (form == CallForm::rpc_async) text = "rpc_async#";
  if (form == CallForm::remote) text = "rpc_remote#";
  text += function;
  text += "(";
  text += caller;
  text += " -> ";
  text += callee;
  text += ")";
  return text;
}

}  // namespace rehearsal
