#include "core/base/user_code.h"

#include <c10/util/Exception.h>
#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <typeinfo>

namespace rehearsal {
namespace {

std::string readable_type_name(const std::type_info& type) {
  int status = 0;
  char* readable = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 ? readable : type.name();
  std::free(readable);
  return name;
}

Error remote_exception(std::string_view worker, std::string_view function, std::string text) {
  return {.kind = ErrorKind::remote_exception,
          .text = std::move(text),
          .worker = std::string(worker),
          .function = std::string(function)};
}

}  // namespace

Error current_exception_as_error(std::string_view worker, std::string_view function) {
  try {
    throw;
  } catch (const NodeKilled&) {
    throw;
  } catch (const RpcError& thrown) {
    Error error = thrown.error();
    error.chain.emplace_back(worker);
    return error;
  } catch (const c10::Error& thrown) {
    return remote_exception(worker, function,
                            std::string("c10::Error: ") + thrown.what_without_backtrace());
  } catch (const std::exception& thrown) {
    return remote_exception(worker, function,
                            readable_type_name(typeid(thrown)) + ": " + thrown.what());
  } catch (...) {
    const std::type_info* type = abi::__cxa_current_exception_type();
    return remote_exception(worker, function,
                            "exception of type " + (type ? readable_type_name(*type) : "unknown"));
  }
}

}  // namespace rehearsal
