#include "core/base/user_code.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <exception>
#include <typeinfo>

#include "core/base/short_text.h"
#include "core/base/symbols.h"

namespace rehearsal {
namespace {

Error remote_exception(std::string_view worker, std::string_view function,
                       const std::type_info* type) {
  return {.kind = ErrorKind::remote_exception,
          .worker = std::string(worker),
          .function = std::string(function),
          .type = type ? short_name(type_name(*type)) : "unknown"};
}

Error error_from(const std::exception& thrown, std::string_view worker, std::string_view function) {
  if (const Error* known = error_of(thrown)) {
    Error error = *known;
    error.chain.emplace_back(worker);
    return error;
  }
  Error error = remote_exception(worker, function, &typeid(thrown));
  // Its own text has addresses in it.
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&thrown))
    error.text = "c10::Error: " + short_text(of_torch->what_without_backtrace());
  else
    error.text = error.type + ": " + short_text(thrown.what());
  return error;
}

}  // namespace

Error current_exception_as_error(std::string_view worker, std::string_view function,
                                 const ExceptionHook* hook) {
  try {
    throw;
  } catch (const NodeKilled&) {
    throw;
  } catch (const std::exception& thrown) {
    Error error = error_from(thrown, worker, function);
    shorten(error);
    if (hook != nullptr)
      hook->complete(error, thrown, function);
    else
      error.exception.reset();
    shorten(error);  // The hook adds to it.
    return error;
  } catch (...) {
    Error error = remote_exception(worker, function, abi::__cxa_current_exception_type());
    error.text = "exception of type " + error.type;
    return error;
  }
}

}  // namespace rehearsal
