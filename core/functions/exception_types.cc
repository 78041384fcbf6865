#include "core/functions/exception_types.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <stdexcept>

#include "core/base/short_text.h"

namespace rehearsal {

// ---- types ------------------------------------------------------------------

// A type stands before all that it derives from, so that the first that matches is the most
// derived.
void ExceptionTypes::insert(ExceptionType entry) {
  for (const auto& known : in_order_) {
    if (known->type == entry.type)
      throw std::invalid_argument("the exception '" + entry.name + "' is registered as '" +
                                  known->name + "'");
    if (known->name == entry.name)
      throw std::invalid_argument("an exception named '" + entry.name + "' is registered already");
  }
  entry.position = static_cast<uint32_t>(in_order_.size());
  in_order_.push_back(std::make_shared<const ExceptionType>(std::move(entry)));
  const auto& added = in_order_.back();
  const auto first_base =
      std::ranges::find_if(derived_first_, [&](const std::shared_ptr<const ExceptionType>& other) {
        return other->handles(added->throw_pointer);
      });
  derived_first_.insert(first_base, added);
}

std::shared_ptr<const ExceptionType> ExceptionTypes::find(const std::exception& thrown) const {
  for (const auto& type : derived_first_)
    if (type->matches(thrown)) return type;
  return nullptr;
}

std::shared_ptr<const ExceptionType> ExceptionTypes::at(uint32_t position) const {
  return position < in_order_.size() ? in_order_[position] : nullptr;
}

std::string ExceptionTypes::describe() const {
  std::string text;
  for (const auto& type : in_order_)
    text.append("exception ").append(type->name).append(" (").append(type->fields).append(")\n");
  return text;
}

// ---- what travels -----------------------------------------------------------

EncodedException::~EncodedException() {
  if (payload_.tensors.empty() && payload_.handles.empty()) return;
  auto content = std::make_shared<Payload>(std::move(payload_));
  strand_->post([strand = strand_.get(), content] { strand->release_later(content); });
}

std::exception_ptr EncodedException::made_for(const Error& error) const {
  std::exception_ptr made;
  const Status status = run_user_code(strand_->name(), "exception", [&] {
    Payload payload = payload_;  // Reading takes from it.
    ValueReader reader(payload);
    made = type_->make(reader, error);
  });
  if (status.ok()) return made;
  Error plain = error;
  plain.text +=
      " (the " + type_->name + " itself could not be made here: " + status.error().text + ")";
  return std::make_exception_ptr(RpcError(std::move(plain)));
}

// ---- of one node ------------------------------------------------------------

void ExceptionEncoder::encode(Error& error, const std::exception& thrown) const {
  error.exception.reset();  // It may have been changed on its way through here.
  std::shared_ptr<const ExceptionType> type = types_.find(thrown);
  if (type == nullptr) return;
  Payload payload;
  const Status written = run_user_code(strand_.name(), "exception", [&] {
    ValueWriter writer(payload);
    type->write(thrown, writer);
    writer.finish();
  });
  if (!written.ok()) {
    error.text +=
        " (the " + type->name + " itself could not be sent: " + written.error().text + ")";
    return;
  }
  error.exception = std::make_shared<const EncodedException>(strand_.shared_from_this(),
                                                             std::move(type), std::move(payload));
}

void ExceptionEncoder::complete(Error& error, const std::exception& thrown,
                                std::string_view function) const {
  // An RpcError carries what it carries.
  if (dynamic_cast<const RpcError*>(&thrown) == nullptr) encode(error, thrown);
  shorten(error);
  if (witness_) witness_(error);
  if (!traces_) return;
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&thrown))
    if (of_torch->backtrace() != nullptr) error.trace += of_torch->backtrace()->get();
  if (!error.trace.empty() && error.trace.back() != '\n') error.trace += '\n';
  error.trace += "at " + strand_.name() + ": " + std::string(function) + '\n';
}

std::shared_ptr<const EncodedException> ExceptionEncoder::received(uint32_t position,
                                                                   Payload payload) const {
  std::shared_ptr<const ExceptionType> type = types_.at(position);
  if (type == nullptr) return nullptr;
  // It may go on to another worker, as it is. Received tensors are contiguous, and are shared.
  const Status ready =
      run_user_code(strand_.name(), "exception", [&] { ValueWriter(payload).finish(); });
  if (!ready.ok()) return nullptr;
  return std::make_shared<const EncodedException>(strand_.shared_from_this(), std::move(type),
                                                  std::move(payload));
}

}  // namespace rehearsal
